"""The equations of `model`, compiled as they stand, and how everything here is compiled."""

from numba import njit

from .. import model

compiled = njit(nogil=True, cache=True, error_model="numpy")  # no test for division by zero: it keeps loops from vectorising
inner = njit(
    nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True
)  # called by kernels only: less to compile

g = compiled(model.g)
z_weight = compiled(model.z_weight)
row_weight = compiled(model.row_weight)
log_rise = compiled(model.log_rise)
omega_logit = compiled(model.omega_logit)
log_copy = compiled(model.log_copy)
