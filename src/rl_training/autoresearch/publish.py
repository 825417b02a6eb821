"""Push a study's results to a branch of its own, and never let that stop the study.

Commits are made with git's plumbing and an index of our own: no checked-out branch, index, working tree or hook of the
user's repository is touched. A study outside any repository gets a bare one, `publish.git`, in its folder. The push is
a child process with a deadline and no way to ask for a password; what it could not send stays committed and goes with
the next. Models go by git-LFS: the branch holds their digests, and the remote keeps them aside.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

from rl_training.autoresearch.study import Study
from rl_training.errors import UsageError
from rl_training.experiment.run_folder import without_secrets

Say = Callable[[str], None]

GIT_SECONDS = 30.0  # for a local command
PUSH_SECONDS = 60.0
MEGABYTE = 1 << 20
QUIET_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
    "GCM_INTERACTIVE": "never",
    "LC_ALL": "C",
}
LFS_ATTRIBUTES = "*.zip filter=lfs diff=lfs merge=lfs -text\n"
# Arguments: remote, branch. What git-LFS has aside goes first, so that the branch never names what is not there.
PUSH = 'git push --quiet --no-verify "$0" "refs/heads/$1:refs/heads/$1"'
PUSH_WITH_MODELS = f'git lfs push "$0" "$1" && {PUSH}'
AUTHOR = ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL")


def remote_of(study: Study, wanted: str | None) -> str | None:
    """Where to push: an address or remote by name, a path made absolute, or ``origin`` of the repository around."""
    if wanted is not None:
        is_path = Path(wanted).exists() or wanted.startswith((".", "/", "~"))
        return str(Path(wanted).expanduser().resolve()) if is_path else wanted
    remotes = _run(["git", "-C", str(study.root), "remote"], check=False).split()
    return "origin" if "origin" in remotes else None


class Publisher:
    """Commits results, log and manifest, and a model up to ``model_megabytes`` (0: none), to ``autoresearch/STUDY``.

    UsageError if models are wanted and there is no git-LFS.
    """

    def __init__(
        self, study: Study, remote: str | None, model_megabytes: float = 0.0, push_seconds: float = PUSH_SECONDS
    ) -> None:
        self._study = study
        self._remote = remote
        self._model_bytes = int(model_megabytes * MEGABYTE)
        if self._model_bytes and not _run(["git", "lfs", "version"], check=False):
            raise UsageError("Models are pushed by git-LFS, which is not installed; install it, or push no models.")
        self._push_seconds = push_seconds
        self._push: subprocess.Popen[bytes] | None = None
        self._push_log: Path | None = None
        self._deadline = 0.0
        self._due = True  # a commit may wait for its push, from a session before
        self.branch = "autoresearch/" + re.sub(r"[^\w.-]+", "-", study.name).strip("-.")

    def publish(self, message: str, say: Say, push: bool = True) -> None:
        """Commit now, and push in the background."""
        try:
            if self._commit(message):
                self._due = True
        except (OSError, subprocess.SubprocessError) as error:
            say(f"Publishing failed, trying again later: {_explain(error)}")
            return
        if push:
            self._start_push(say)

    def poll(self, say: Say) -> None:
        """Look after a push under way."""
        if self._push is None:
            return
        code = self._push.poll()
        if code is None and time.monotonic() < self._deadline:
            return
        if code is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._push.pid, signal.SIGKILL)
            self._push.wait()
        assert self._push_log is not None
        output = self._push_log.read_text(errors="replace").strip().splitlines()
        self._push_log.unlink(missing_ok=True)
        self._push = None
        if code == 0:
            say(f"Published to {without_secrets(str(self._remote))}, branch {self.branch}.")
            return
        self._due = True
        if code is None:
            why = f"no answer within {self._push_seconds:g} s" if self._deadline else "it was stopped"
        else:
            why = output[-1] if output else f"code {code}"
        say(f"Publishing failed, trying again later: {without_secrets(why)}")

    def finish(self, say: Say, in_a_hurry: Callable[[], bool] = lambda: False) -> None:
        """Commit the end of a study and give its push the time it may take, or none once somebody is in a hurry."""
        self._wait_for_push(say, in_a_hurry)
        self.publish(f"{self._study.name}: end of a session", say, push=not in_a_hurry())
        self._wait_for_push(say, in_a_hurry)

    def _wait_for_push(self, say: Say, in_a_hurry: Callable[[], bool]) -> None:
        while self._push is not None:
            if in_a_hurry():
                self._deadline = 0.0
            self.poll(say)
            time.sleep(0.02)

    def _start_push(self, say: Say) -> None:
        if self._remote is None or not self._due or self._push is not None:
            return
        command = ["sh", "-c", PUSH_WITH_MODELS if self._model_bytes else PUSH, self._remote, self.branch]
        handle, name = tempfile.mkstemp(prefix="donkey-rl-push-")
        self._push_log = Path(name)
        self._due = False
        self._deadline = time.monotonic() + self._push_seconds
        try:
            self._push = subprocess.Popen(
                command,
                cwd=self._study.root,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=handle,
                stderr=handle,
                start_new_session=True,
            )
        except OSError as error:
            self._due = True
            say(f"Publishing failed, trying again later: {_explain(error)}")
        finally:
            os.close(handle)

    def _commit(self, message: str) -> bool:
        """A commit of the study's files on its branch; False if nothing has changed since the last."""
        with tempfile.TemporaryDirectory(prefix="donkey-rl-index-") as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            blobs = {}
            for path in self._files():
                blobs[self._name_of(path)] = self._git("hash-object", "-w", "--no-filters", str(path.resolve()))
            for path in self._models():
                blobs[self._name_of(path)] = self._blob(self._git("lfs", "clean", into=path.read_bytes()) + "\n")
                blobs[".gitattributes"] = self._blob(LFS_ATTRIBUTES)
            for name, blob in blobs.items():
                self._git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}", env=index)
            tree = self._git("write-tree", env=index)
        parent = self._git("for-each-ref", "--format=%(objectname)", f"refs/heads/{self.branch}")
        if parent and self._git("rev-parse", f"{parent}^{{tree}}") == tree:
            return False
        parents = ["-p", parent] if parent else []
        commit = self._git("commit-tree", tree, *parents, "-m", message)
        self._git("update-ref", f"refs/heads/{self.branch}", commit, parent or "0" * 40)
        return True

    def _files(self) -> list[Path]:
        study = self._study
        files = [study.results, study.sweep_results, study.log, study.champion / "manifest.json"]
        return [path for path in files if path.exists()]

    def _models(self) -> list[Path]:
        model = self._study.champion / "model.zip"
        return [model] if model.exists() and model.stat().st_size <= self._model_bytes else []

    def _name_of(self, path: Path) -> str:
        return f"{self._study.name}/{path.relative_to(self._study.root).as_posix()}"

    def _environment(self) -> dict[str, str]:
        environment = {**os.environ, **QUIET_ENVIRONMENT}
        environment.setdefault("GIT_DIR", self._git_dir)
        for names, value in zip(AUTHOR, ("donkey-rl", "donkey-rl@localhost"), strict=True):
            for name in names:
                environment.setdefault(name, value)
        return environment

    @cached_property
    def _git_dir(self) -> str:
        """The repository around the study, or one made for it."""
        own = self._study.root.resolve() / "publish.git"
        if own.exists():
            return str(own)
        found = _run(["git", "-C", str(self._study.root), "rev-parse", "--absolute-git-dir"], check=False)
        if found:
            return found
        _run(["git", "init", "--quiet", "--bare", str(own)])
        return str(own)

    def _blob(self, text: str) -> str:
        return self._git("hash-object", "-w", "--stdin", into=text.encode())

    def _git(self, *arguments: str, into: bytes = b"", env: Mapping[str, str] = {}) -> str:
        return _run(["git", *arguments], cwd=self._study.root, env={**self._environment(), **env}, into=into)


def _run(
    command: list[str],
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    check: bool = True,
    into: bytes = b"",
) -> str:
    """What a command prints; ``into`` is what it reads."""
    result = subprocess.run(
        command, cwd=cwd, env=env, check=check, input=into, capture_output=True, timeout=GIT_SECONDS
    )
    return result.stdout.decode(errors="replace").strip() if result.returncode == 0 else ""


def _explain(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        lines = error.stderr.decode(errors="replace").strip().splitlines()
        return without_secrets(lines[-1] if lines else f"git ended with code {error.returncode}")
    return without_secrets(str(error))
