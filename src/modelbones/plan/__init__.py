"""What fits: weights and state on real ranks, by an engine's own rules."""

from modelbones.plan.plan import Plan, plan
from modelbones.plan.request import Memory, PlanRequest

__all__ = ["Memory", "Plan", "PlanRequest", "plan"]
