"""The pages that pause, resume, archive and restore a pool. Each asks for confirmation first."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from holdfast.accounts.sessions import Session
from holdfast.inventory.console.frame import HOME, Console, merchant
from holdfast.inventory.console.pools.pool_paths import POOL, pool_of
from holdfast.inventory.console.variants.variant_names import names_of
from holdfast.inventory.pools.model import ArchivePool, ChangePool, PausePool, PoolChange, RestorePool, ResumePool
from holdfast.inventory.problems import NAME_TAKEN, POOL_HAS_HOLDS, POOL_NOT_ACTIVE
from holdfast.kit.contract.command import check
from holdfast.kit.contract.messages import translatable
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.pages import forms
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, try_form

FORM_PROBLEMS = (NAME_TAKEN, POOL_HAS_HOLDS, POOL_NOT_ACTIVE)
"""Problems that the form explains."""


class StatusStep(NamedTuple):
    """A change of a pool's status.

    question, meaning, keep, button    in English, as they are in the catalogues
    hides                              whether the storefront shows its variants no longer
    """

    name: str
    operation: str
    kind: type[ChangePool]
    question: str
    meaning: str
    keep: str
    button: str
    hides: bool = False


STEPS = (
    StatusStep(
        "pause",
        "pause_pool",
        PausePool,
        translatable("Pause “%(name)s”?"),
        translatable("Its stock can still be changed. You can resume the pool at any time."),
        translatable("Keep the pool active"),
        translatable("Pause the pool"),
        hides=True,
    ),
    StatusStep(
        "resume",
        "resume_pool",
        ResumePool,
        translatable("Resume “%(name)s”?"),
        translatable("You can pause it again at any time."),
        translatable("Keep the pool paused"),
        translatable("Resume the pool"),
    ),
    StatusStep(
        "archive",
        "archive_pool",
        ArchivePool,
        translatable("Archive “%(name)s”?"),
        translatable("Its stock cannot be changed until you restore the pool, which you can do at any time."),
        translatable("Keep the pool active"),
        translatable("Archive the pool"),
        hides=True,
    ),
    StatusStep(
        "restore",
        "restore_pool",
        RestorePool,
        translatable("Restore “%(name)s”?"),
        translatable("Its stock can be changed again. You can archive it again at any time."),
        translatable("Keep the pool archived"),
        translatable("Restore the pool"),
    ),
)


class PoolStatusPages:
    """Answers requests for the pages that change the status of a pool."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def routes(self) -> list[Route]:
        return [
            self._console.route(f"{POOL}/{step.name}", f"{step.name}_pool", self._answer(step), "POST")
            for step in STEPS
        ]

    def _answer(self, step: StatusStep) -> Callable[[Session, Request], Awaitable[Reply]]:
        async def answer(session: Session, request: Request) -> Reply:
            fields = await self._console.signed_in.read(session, request) if request.method == "POST" else None
            pool = await pool_of(self._console, session, request)
            refusal = NOT_REFUSED
            if fields is not None:
                released = {"release_variants": "release_variants" in fields} if step.kind is ArchivePool else {}
                command = check(step.kind, {"pool_id": pool.id, **released})
                run = self._console.run[step.operation]
                outcome = await try_form(
                    lambda: forms.run_once(run, merchant(session), command, fields, PoolChange), *FORM_PROBLEMS
                )
                if not isinstance(outcome, FormRefusal):
                    return self._console.redirect(request, f"{HOME}/pools/{pool.id}")
                refusal = outcome
            return self._console.page(
                session,
                request,
                "pools/pool_status.html",
                refusal.status,
                pool=pool,
                step=step,
                code=refusal.code,
                names_by_gid=await names_of(
                    self._console, session, request, [member.variant_gid for member in pool.members[:5]]
                ),
                once=forms.new_token(),
            )

        return answer
