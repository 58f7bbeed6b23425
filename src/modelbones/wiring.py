"""The residual paths that families share: what runs at each site, and after the last layer."""

from __future__ import annotations

from modelbones.parts.ends import (
    INPUT_NORM,
    POST_ATTENTION_NORM,
    POST_FEEDFORWARD_NORM,
    PRE_FEEDFORWARD_NORM,
    SINGLE_NORM,
)
from modelbones.skeleton import Final, FinalStep, ResidualStep, Site, Step


def site_steps(site: Site, norm: str, sublayer: Step, *, hyper: bool = False) -> tuple[ResidualStep, ...]:
    """One site: save, norm named by its weight, sublayer, add; `hyper` mixes several streams around it."""
    before = (ResidualStep(Step.HC_PRE, site=site),) if hyper else ()
    after = (ResidualStep(Step.HC_POST, site=site),) if hyper else ()
    return (
        ResidualStep(Step.SAVE_RESIDUAL),
        *before,
        ResidualStep(Step.NORM, weight=norm),
        ResidualStep(sublayer),
        *after,
    )


def both_sites(
    *, hyper: bool = False, mixer_norm: str = INPUT_NORM, mlp_norm: str = POST_ATTENTION_NORM
) -> tuple[ResidualStep, ...]:
    """A mixer's site and then an MLP's."""
    return (
        *site_steps(Site.ATTN, mixer_norm, Step.MIXER, hyper=hyper),
        *site_steps(Site.FFN, mlp_norm, Step.MLP, hyper=hyper),
    )


PRE_NORM = both_sites()
"""Norm in front of each sublayer, its output added to what the site started from."""

HYPER_CONNECTED = both_sites(hyper=True)
"""The same between the collapse and the mixing of several residual streams."""

SANDWICH = (
    *site_steps(Site.ATTN, INPUT_NORM, Step.MIXER),
    ResidualStep(Step.NORM, weight=POST_ATTENTION_NORM),
    *site_steps(Site.FFN, PRE_FEEDFORWARD_NORM, Step.MLP),
    ResidualStep(Step.NORM, weight=POST_FEEDFORWARD_NORM),
)
"""A second norm behind each sublayer, before its output is added."""

MIXER_ONLY = site_steps(Site.ATTN, SINGLE_NORM, Step.MIXER)
MLP_ONLY = site_steps(Site.FFN, SINGLE_NORM, Step.MLP)
"""The one site of a layer that holds a mixer or an MLP, not both."""


def norm_and_head(norm: str) -> tuple[FinalStep, ...]:
    """The final norm, named by its full tensor name, and the output head."""
    return FinalStep(Final.NORM, weight=norm), FinalStep(Final.LM_HEAD)
