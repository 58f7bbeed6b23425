"""Hold a contract against a census: what is missing, wrong or left over, group by group."""

from modelbones.audit.audit import Audit, GroupAudit, Options, audit

__all__ = ["Audit", "GroupAudit", "Options", "audit"]
