# The public names of evalstone.models.

from evalstone.models.catalog import ProviderInfo as ProviderInfo
from evalstone.models.endpoint import Endpoint as Endpoint
from evalstone.models.endpoint import endpoint_of as endpoint_of
from evalstone.models.limits import Limits as Limits
from evalstone.models.model import LanguageModel as LanguageModel
from evalstone.models.provider import ChatMessage as ChatMessage
from evalstone.models.provider import ChatProvider as ChatProvider
from evalstone.models.provider import Completion as Completion
from evalstone.models.provider import ReplyForm as ReplyForm
from evalstone.models.provider import RequestSettings as RequestSettings

__all__: list[str]
