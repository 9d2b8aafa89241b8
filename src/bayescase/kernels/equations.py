"""The equations of `model`, compiled as they stand."""

from .. import model
from .compiling import inner

g = inner(model.g)
z_weight = inner(model.z_weight)
row_weight = inner(model.row_weight)
log_rise = inner(model.log_rise)
omega_logit = inner(model.omega_logit)
log_copy = inner(model.log_copy)
