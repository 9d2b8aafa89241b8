"""The equations of `model`, compiled as they stand."""

from .. import model
from .compiling import compiled

g = compiled(model.g)
z_weight = compiled(model.z_weight)
row_weight = compiled(model.row_weight)
log_rise = compiled(model.log_rise)
omega_logit = compiled(model.omega_logit)
log_copy = compiled(model.log_copy)
