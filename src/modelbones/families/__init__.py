"""One file or folder a family: it reads its config's keys and composes parts from them."""
