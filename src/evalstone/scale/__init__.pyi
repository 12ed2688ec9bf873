# The public names of evalstone.scale.

from evalstone.scale.batches import ScoreBatches as ScoreBatches
from evalstone.scale.sharding import ShardResult as ShardResult
from evalstone.scale.sharding import merge as merge
from evalstone.scale.sharding import score_shard as score_shard
