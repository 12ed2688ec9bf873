from evalstone.testing.fixture import Evalstone as Evalstone

__all__: list[str]
