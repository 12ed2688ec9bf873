# The public names of evalstone.otel.

from evalstone.otel.otlp import emit_otlp as emit_otlp
from evalstone.otel.otlp import export_otlp as export_otlp
from evalstone.otel.switch import disable as disable
from evalstone.otel.switch import emit as emit
from evalstone.otel.switch import enable as enable

__all__: list[str]
