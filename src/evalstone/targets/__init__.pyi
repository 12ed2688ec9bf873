# The public names of evalstone.targets.

from evalstone.targets.answers import Answer as Answer
from evalstone.targets.base import Prepared as Prepared
from evalstone.targets.base import Target as Target
from evalstone.targets.base import absent as absent
from evalstone.targets.command import CommandTarget as CommandTarget
from evalstone.targets.function import FunctionTarget as FunctionTarget
from evalstone.targets.http import HTTPTarget as HTTPTarget
from evalstone.targets.model import ModelTarget as ModelTarget
from evalstone.targets.parse import FindRun as FindRun
from evalstone.targets.parse import parse_target as parse_target
from evalstone.targets.replay import RecordedRun as RecordedRun
from evalstone.targets.replay import ReplayTarget as ReplayTarget
from evalstone.targets.tools import Tools as Tools
from evalstone.targets.users import AskUser as AskUser
from evalstone.targets.users import FunctionUser as FunctionUser
from evalstone.targets.users import ScriptedUser as ScriptedUser
from evalstone.targets.users import SimulatedUser as SimulatedUser
from evalstone.targets.users import User as User
from evalstone.targets.users import parse_user as parse_user

__all__: list[str]
