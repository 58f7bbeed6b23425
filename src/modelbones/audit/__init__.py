"""Hold a contract against a census: what is missing, wrong or left over, group by group."""

from modelbones.audit.audit import Audit, audit
from modelbones.audit.options import Options
from modelbones.audit.verdicts import GroupAudit, Verdict

__all__ = ["Audit", "GroupAudit", "Options", "Verdict", "audit"]
