"""Processes that are killed before a certain change of the file system: before each in turn, until there is none left."""

import os
import signal
import stat
import sys
import traceback

CHANGES = ("open", "mkdir", "rmdir", "fsync", "replace", "link", "unlink", "pwrite", "ftruncate", "rename")


def killed_before(at, act, within):
    """Call act() in a child process, which is killed before its at-th change within a folder: whether it came that far.

    What the process was about to do is what a real one leaves undone: nothing is cleaned up after it.
    """
    child = os.fork()
    if child == 0:
        try:
            _kill_before(at, str(within))
            act()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "the command failed, see standard error"
    return False


def _kill_before(at, within):
    left = [at]

    def counted(name, function):
        def call(first, *arguments, **options):
            writes = name != "open" or arguments[0] & (os.O_WRONLY | os.O_RDWR)
            if writes and _inside(first, within):
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return function(first, *arguments, **options)

        return call

    for name in CHANGES:
        setattr(os, name, counted(name, getattr(os, name)))


def _inside(what, within):
    if isinstance(what, int):
        return not stat.S_ISSOCK(os.fstat(what).st_mode)
    return os.path.abspath(what).startswith(within)
