# The public names of evalstone.models.

from evalstone.models.catalog import ProviderInfo as ProviderInfo
from evalstone.models.decisions import Decided as Decided
from evalstone.models.decisions import DecisionProvider as DecisionProvider
from evalstone.models.embeddings import Embeddings as Embeddings
from evalstone.models.endpoint import Call as Call
from evalstone.models.endpoint import Endpoint as Endpoint
from evalstone.models.endpoint import Learn as Learn
from evalstone.models.endpoint import Spent as Spent
from evalstone.models.endpoint import endpoint_of as endpoint_of
from evalstone.models.limits import Limiter as Limiter
from evalstone.models.limits import Limits as Limits
from evalstone.models.model import LanguageModel as LanguageModel
from evalstone.models.model import Model as Model
from evalstone.models.model import OpenModel as OpenModel
from evalstone.models.provider import AccessRefused as AccessRefused
from evalstone.models.provider import ChatMessage as ChatMessage
from evalstone.models.provider import ChatProvider as ChatProvider
from evalstone.models.provider import Completion as Completion
from evalstone.models.provider import Connection as Connection
from evalstone.models.provider import ReplyForm as ReplyForm
from evalstone.models.provider import RequestSettings as RequestSettings
from evalstone.models.typed_questions import State as State
from evalstone.models.typed_questions import TypedQuestion as TypedQuestion
from evalstone.models.typed_questions import TypedQuestionKind as TypedQuestionKind

__all__: list[str]
