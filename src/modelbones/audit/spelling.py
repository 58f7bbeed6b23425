"""The finding about a group that is stored under another writer's names."""

from __future__ import annotations

from modelbones.audit.words import one_finding
from modelbones.dialects.recognise import READ_BY, Spelling
from modelbones.findings import Code, Finding, Severity


def spelling_finding(spelling: Spelling) -> Finding:
    """One finding for the whole group, however many names it maps."""
    kinds = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in sorted(spelling.kinds.items()) if count)
    writers = " and ".join(spelling.writers)
    readers = "; ".join(READ_BY[writer][0] for writer in spelling.writers)
    losers = "; ".join(READ_BY[writer][1] for writer in spelling.writers)
    moved = "" if spelling.prefix == spelling.published_prefix else f' under "{spelling.prefix}"'
    return one_finding(
        Code.RENAMED,
        spelling.group.value,
        found=f"{spelling.mapped:,} names spelled as {writers} spells them{moved} ({kinds}); read by {readers}",
        expected=f'the published names under "{spelling.published_prefix}"',
        fix="load it with a reader of these names, or save it again under the published ones",
        why=losers,
        severity=Severity.WARNING,
        detail={
            "dialect": list(spelling.writers),
            "mapped": spelling.mapped,
            "kinds": dict(sorted(spelling.kinds.items())),
            "prefix": spelling.prefix,
            "published_prefix": spelling.published_prefix,
        },
    )
