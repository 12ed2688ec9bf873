from evalstone.testing.fixture import Evalstone as Evalstone
from evalstone.testing.fixture import Inconclusive as Inconclusive

__all__: list[str]
