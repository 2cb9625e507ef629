"""What beta-CUSUM asks of the Beta distribution: its density, and its parameters with their confidence from a sample.

The parameters of greatest likelihood solve psi(a) - psi(a + b) = mean ln d and psi(b) - psi(a + b) = mean ln(1 - d);
Newton's method does, for the likelihood is concave. n times the matrix of its second derivatives, negated, is the
information, and the inverse of that the covariance of the estimates. (The paper's appendix 1 leaves the n out, and
takes the variance for the standard deviation in the interval.) Gnanadesikan, Pinkham and Hughes 1967.
"""

from __future__ import annotations

import math

from minidsms.machine_code import Float64s, helper

STEPS = 40
"""Of Newton's method; it takes five or so."""
LARGEST = 1e7
"""A parameter above this is a sample without any variance."""


@helper(typed=True)
def log_gamma(x: float) -> float:
    """ln Gamma(x), x > 0: Stirling's series, above 8."""
    down = 0.0
    while x < 8.0:
        down += math.log(x)
        x += 1.0
    r = 1.0 / (x * x)
    series = (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r / 1680))) / x
    return (x - 0.5) * math.log(x) - x + 0.9189385332046727 + series - down


@helper(typed=True)
def digamma(x: float) -> float:
    """The derivative of ln Gamma(x), x > 0."""
    down = 0.0
    while x < 8.0:
        down += 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    return math.log(x) - 0.5 / x - r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r / 240))) - down


@helper(typed=True)
def trigamma(x: float) -> float:
    """The second derivative of ln Gamma(x), x > 0."""
    up = 0.0
    while x < 8.0:
        up += 1.0 / (x * x)
        x += 1.0
    r = 1.0 / (x * x)
    return 1.0 / x + r / 2 + r / x * (1.0 / 6 - r * (1.0 / 30 - r * (1.0 / 42 - r / 30))) + up


@helper(typed=True)
def log_density(d: float, a: float, b: float) -> float:
    """ln of the density of Beta(a, b) at d, 0 < d < 1."""
    log_beta = log_gamma(a) + log_gamma(b) - log_gamma(a + b)
    return float((a - 1) * math.log(d) + (b - 1) * math.log(1 - d) - log_beta)


@helper(typed=True)
def parameters_of(mean: float, variance: float, out: Float64s) -> None:
    """(a, b) of the Beta distribution with this mean and variance, as far as there is one."""
    size = min(max(mean * (1 - mean) / max(variance, 1e-12) - 1, 1e-3), LARGEST)
    out[0], out[1] = mean * size, (1 - mean) * size


@helper(typed=True)
def fit(log_mean: float, log_rest: float, out: Float64s) -> None:
    """The (a, b) of greatest likelihood, from those in `out` on. log_mean: mean ln d; log_rest: mean ln(1 - d)."""
    for _ in range(STEPS):
        a, b = out[0], out[1]
        both = digamma(a + b)
        slope_a, slope_b = log_mean - digamma(a) + both, log_rest - digamma(b) + both
        t = trigamma(a + b)
        aa, bb = trigamma(a) - t, trigamma(b) - t
        determinant = aa * bb - t * t
        if not determinant > 0:
            return
        step_a, step_b = (bb * slope_a + t * slope_b) / determinant, (t * slope_a + aa * slope_b) / determinant
        shorter = 1.0
        while a + shorter * step_a <= 0 or b + shorter * step_b <= 0:
            shorter /= 2
        a, b = a + shorter * step_a, b + shorter * step_b
        if not a + b < LARGEST:
            return
        out[0], out[1] = a, b
        if abs(step_a) <= 1e-9 * a and abs(step_b) <= 1e-9 * b:
            return


@helper(typed=True)
def deviations(n: float, a: float, b: float, out: Float64s) -> None:
    """The standard deviations of both estimates from a sample of n."""
    t = trigamma(a + b)
    aa, bb = trigamma(a) - t, trigamma(b) - t
    determinant = max(aa * bb - t * t, 1e-300)
    out[0], out[1] = math.sqrt(bb / determinant / n), math.sqrt(aa / determinant / n)
