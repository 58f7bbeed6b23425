"""Configs of well-known releases, hyper-parameters re-typed: `modelbones show glm-5.3-flash`."""
