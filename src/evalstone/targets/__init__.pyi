# The public names of evalstone.targets.

from evalstone.targets.base import Answer as Answer
from evalstone.targets.base import FunctionTarget as FunctionTarget
from evalstone.targets.base import Target as Target
from evalstone.targets.base import absent as absent
from evalstone.targets.command import CommandTarget as CommandTarget
from evalstone.targets.http import HTTPTarget as HTTPTarget
from evalstone.targets.model import ModelTarget as ModelTarget
from evalstone.targets.parse import parse_target as parse_target
from evalstone.targets.replay import ReplayTarget as ReplayTarget
from evalstone.targets.tools import Tools as Tools

__all__: list[str]
