"""The page on which an organizer chooses how its pages and mails look: accent, logo, and words about itself."""

from collections.abc import Mapping, Sequence

from holdfast.accounts.sessions import Session
from holdfast.events.console.events.uploads import FileRefusal, Uploads
from holdfast.events.console.frame import Console, organizer
from holdfast.events.organizers import branding
from holdfast.events.organizers.accent import OUR_ACCENT, is_color, nearest_passing, passes, stylesheet_path
from holdfast.events.organizers.branding import Branding, ChangeBranding, ChangeLogo, GetBranding
from holdfast.events.pages.cover import cover_svg
from holdfast.events.photos.operations import READ_PHOTOS, PhotoList, ReadPhotos
from holdfast.kit.contract.command import check
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operation, read, single
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, try_form

BRANDING_PATH = "/console/look"

GET_BRANDING = Operation("get_branding", None, read(branding.get))
CHANGE_BRANDING = Operation("change_branding", None, single(branding.change))
CHANGE_LOGO = Operation("change_logo", None, single(branding.change_logo))
OPERATIONS = (GET_BRANDING, CHANGE_BRANDING, CHANGE_LOGO)
"""Operations of the console alone: they have no routes of the API and no tools."""


class BrandingPage:
    """Answers requests for the page."""

    def __init__(self, console: Console, runner: Runner, uploads: Uploads) -> None:
        self._console = console
        self._uploads = uploads
        self._get, self._change, self._change_logo = (
            runner.run_of(GET_BRANDING),
            runner.run_of(CHANGE_BRANDING),
            runner.run_of(CHANGE_LOGO),
        )
        self._photos = runner.run_of(READ_PHOTOS)

    def routes(self) -> list[Route]:
        return [self._console.route(BRANDING_PATH, "look", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the look of the organizer; with POST change it."""
        if request.method != "POST":
            return await self._page(session, request)
        form = await self._uploads.read(session, request, 1)
        if form.fields.get("do") == "remove":
            await self._change_logo(organizer(session), ChangeLogo())
            return self._console.redirect(request, f"{BRANDING_PATH}?done=saved")
        if form.refused:
            return await self._page(session, request, values=form.fields, refused=form.refused)
        values = _values_of(form.fields)
        result = await try_form(lambda: self._change(organizer(session), check(ChangeBranding, values)))
        if isinstance(result, FormRefusal):
            return await self._page(session, request, values=form.fields, refusal=result)
        if form.photos:
            await self._change_logo(organizer(session), ChangeLogo(key=form.photos[0].key))
        return self._console.redirect(request, f"{BRANDING_PATH}?done=saved")

    async def _page(
        self,
        session: Session,
        request: Request,
        *,
        values: Mapping[str, str] | None = None,
        refusal: FormRefusal = NOT_REFUSED,
        refused: Sequence[FileRefusal] = (),
    ) -> Reply:
        branding: Branding = await self._get(organizer(session), GetBranding())
        keys = [branding.logo_key] if branding.logo_key else []
        logos: PhotoList = await self._photos(organizer(session), ReadPhotos(keys=keys))
        typed = (values or {}).get("accent", "")
        return self._console.page(
            session,
            request,
            "account/branding.html",
            422 if refused else refusal.status,
            here=BRANDING_PATH,
            branding=branding,
            logo_image=logos.photos[0][1] if logos.photos else None,
            preview_style=stylesheet_path(branding.accent) if branding.accent else "",
            values=values or {"accent": branding.accent or OUR_ACCENT, "about": branding.about or ""},
            errors=refusal.errors,
            our_accent=OUR_ACCENT,
            cover=cover_svg(branding.name),
            nearest=nearest_passing(typed) if is_color(typed) and not passes(typed) else "",
            refused=refused,
            is_saved=values is None and not refused and read_query(request.query).get("done") == "saved",
            images=logos.images_from,
        )


def _values_of(fields: Mapping[str, str]) -> dict[str, str | None]:
    """The values of a form: its accent is that of the pressed button, or else that of the field."""
    button = fields.get("do", "")
    accent = button.removeprefix("accent ") if button.startswith("accent ") else fields.get("accent", "").lower()
    about = fields.get("about", "").replace("\r\n", "\n").strip()
    return {"accent": accent if accent != OUR_ACCENT else None, "about": about or None}
