"""The page behind a link in each mail: it stops and resumes all mails of the service to an address."""

from collections.abc import Awaitable, Callable

from holdfast.accounts.settings import SIGN_INS_OF_CLIENT
from holdfast.accounts.stopped_mails import mailboxes
from holdfast.accounts.stopped_mails.mailboxes import MAILBOX_PATH, MAILBOX_STATUS, RESUME, STOP, Mailbox
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND
from holdfast.kit.http.handler import Access, Handler, Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import Site, redirect
from holdfast.kit.security.service_secret import Secret


class StoppedMailsPages:
    """Answers requests about the mails to one mailbox. A GET changes nothing: mail servers follow links."""

    def __init__(self, runner: Runner, limits: Limits, site: Site, secret: Secret) -> None:
        self._get_mailbox, self._stop, self._resume = (
            runner.run_of(MAILBOX_STATUS),
            runner.run_of(STOP),
            runner.run_of(RESUME),
        )
        self._limits = limits
        self._site = site
        self._secret = secret

    def routes(self) -> list[Route]:
        def page(path: str, name: str, answer: Callable[[Caller, Request], Awaitable[Reply]]) -> Route:
            methods = ("GET", "HEAD", "POST")
            handler = Handler(Access(name), self._limits, answer, self._site.refuse, methods=methods)
            return Route(path, handler)

        return [
            page(f"{MAILBOX_PATH}/{{link}}", "stop_mails", self.stop),
            page(f"{MAILBOX_PATH}/{{link}}/again", "resume_mails", self.resume),
        ]

    async def stop(self, caller: Caller, request: Request) -> Reply:
        """Show whether the mails are stopped, or stop them.

        A mail program does so by itself (RFC 8058), with a POST that has no token.
        """
        mailbox = await self._mailbox_of_link(caller, request)
        if request.method == "POST":
            await self._stop(caller, Mailbox(mailbox=mailbox))
        language, path = language_of(request), mailboxes.path(self._secret, mailbox)
        return self._site.page(
            "stopped_mails/mails.html",
            language=language,
            stopped=await self._get_mailbox(caller, Mailbox(mailbox=mailbox)),
            stop_path=language.at(path),
            again_path=language.at(f"{path}/again"),
        )

    async def resume(self, caller: Caller, request: Request) -> Reply:
        """Resume the mails."""
        mailbox = await self._mailbox_of_link(caller, request)
        if request.method == "POST":
            await self._resume(caller, Mailbox(mailbox=mailbox))
        return redirect(language_of(request).at(mailboxes.path(self._secret, mailbox)))

    async def _mailbox_of_link(self, caller: Caller, request: Request) -> bytes:
        """The mailbox that a link names. Raises `not_found` and `rate_limited`."""
        mailbox = mailboxes.read_link(self._secret, request.fields["link"])
        if mailbox is None:
            await self._limits.hit(SIGN_INS_OF_CLIENT, caller.name)
            raise NOT_FOUND()
        return mailbox
