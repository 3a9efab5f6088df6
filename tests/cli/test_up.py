"""`holdfast up`: what it starts and prints, also when it is started again."""

import asyncio
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import httpx2
import pytest
import stripe

from holdfast import __version__
from holdfast.events.service import EVENTS
from holdfast.inventory.service import INVENTORY
from holdfast.kit.environment.settings import DEMO_PAYMENTS_FILE
from holdfast.kit.postgres.bundled_server import Cluster
from holdfast.kit.postgres.schema.lineage import WITHOUT_FILE
from holdfast_demo.stripe.processor import load_or_create_secrets
from tests.demo.stripe.processor import ACCOUNT_V2
from tests.helpers.command_line import run_holdfast, run_up
from tests.helpers.data_directories import scratch_directory
from tests.helpers.events_service import eventually
from tests.helpers.processes import HOLDFAST
from tests.helpers.serving import startup_output, stop


def find_free_ports(number: int) -> int:
    """The first of some free ports that follow each other."""
    while True:
        with contextlib.ExitStack() as sockets, contextlib.suppress(OSError, OverflowError):
            first = 0
            for offset in range(number):
                listener = sockets.enter_context(socket.socket())
                listener.bind(("127.0.0.1", first and first + offset))
                first = first or listener.getsockname()[1]
            return first


@pytest.fixture(scope="module")
def data_dir() -> Path:
    """A data directory of these tests' own."""
    return scratch_directory()


@pytest.fixture(scope="module")
def printed_dir() -> Path:
    """The data directory of the start that several tests look at."""
    return scratch_directory()


@pytest.fixture(scope="module")
def output(printed_dir: Path) -> Generator[str]:
    """What one start says that several tests look at, as long as they do."""
    with run_up(printed_dir, "--inventory-port=0", "--events-port=0") as output:
        yield output


def test_a_second_start_says_what_runs_already_and_where(data_dir: Path) -> None:
    inventory = find_free_ports(4)
    events, ports = inventory + 1, (f"--inventory-port={inventory}", f"--events-port={inventory + 1}")
    with run_up(data_dir, HOLDFAST_PORT=str(inventory)) as first:
        again = run_holdfast("up", *ports, HOLDFAST_DATA_DIR=str(data_dir))
        alone = run_holdfast("events", "serve", "--port", str(events), HOLDFAST_DATA_DIR=str(data_dir))

    for offset, name in enumerate(("Inventory", "Events", "Demo payments", "Demo shops")):
        assert re.search(rf"^{name} +http://127.0.0.1:{inventory + offset}$", first, re.MULTILINE), name

    of_inventory = f"Holdfast Inventory runs already at http://127.0.0.1:{inventory}."
    of_events = f"Holdfast Events runs already at http://127.0.0.1:{events}."
    advice = "Stop it first, or choose another port."
    assert (again.returncode, again.stderr) == (1, f"{of_inventory} {advice} {of_events} {advice}\n")
    assert (alone.returncode, alone.stderr) == (1, f"{of_events} {advice}\n")


def test_the_printed_address_is_that_of_a_running_process_after_another_one_of_the_directory_ended(
    data_dir: Path,
) -> None:
    def known(service: str) -> str:
        return run_holdfast(service, "address", HOLDFAST_DATA_DIR=str(data_dir)).stdout.strip()

    services = {"inventory": "Inventory", "events": "Events"}
    with run_up(data_dir, "--port=0") as first:
        with run_up(data_dir, "--port=0") as second:
            for service, title in services.items():
                assert re.search(rf"^{title} +{known(service)}$", second, re.MULTILINE)
        for service, title in services.items():
            assert re.search(rf"^{title} +{known(service)}$", first, re.MULTILINE)
            assert httpx2.get(f"{known(service)}/healthz").status_code == 200
    for service, title in services.items():
        assert re.search(rf"^{title} +{known(service)}$", second, re.MULTILINE), "the one that began last"


def test_the_first_start_prints_keys_and_a_page_and_later_starts_say_how_to_get_new_ones() -> None:
    directory = scratch_directory()
    with run_up(directory, "--inventory-port=0", "--events-port=0") as first:
        [demo] = re.findall(r"^  event page +(http://\S+/organizers/demo-organizer/events/1)$", first, re.MULTILINE)
        assert '<h1 dir="auto">Open studio evening</h1>' in httpx2.get(demo).text
        [address] = re.findall(r"^Events +(http://\S+)$", first, re.MULTILINE)
        assert httpx2.get(f"{address}/.well-known/oauth-authorization-server").json()["issuer"] == address
    with run_up(directory, "--inventory-port=0", "--events-port=0") as second:
        pass

    assert (first.count("hf_"), second.count("hf_")) == (3, 0)
    for output in (first, second):
        assert "holdfast events key create --admin --name NAME" in output
        assert "holdfast events key create --organizer SLUG --name NAME" in output
    assert "holdfast inventory shop key SHOP_DOMAIN" in second
    assert re.search(
        r"^Webhooks +add http://127.0.0.1:8787/ .*\n  listen there +\S+ webhooks listen --secret ", first, re.MULTILINE
    )


def test_a_second_start_keeps_the_demonstrations_and_their_secrets_until_real_partners_are_set_up(
    data_dir: Path, output: str, printed_dir: Path
) -> None:
    ports = ("--inventory-port=0", "--events-port=0")
    with run_up(data_dir, *ports) as first:
        account_id = open_payout_account(data_dir, first)
        install_and_sell(first)
        links, secrets = [use_link_of_organizer(first)], secrets_that_only_their_owner_reads(data_dir, first)
    with run_up(data_dir, *ports) as second:
        client = stripe.StripeClient(key(data_dir), base_addresses={"api": payments_address(second)})
        assert client.v2.core.accounts.retrieve(account_id).contact_email == "ada@example.com"
        [paid] = re.findall(r"^  card payment +(http://\S+)$", second, re.MULTILINE)
        assert "12.50" in httpx2.get(paid).text
        [shop] = re.findall(r"^  demo shop +(http://\S+/demo\.myshopify\.com)$", second, re.MULTILINE)
        assert "#1001" in httpx2.get(f"{shop}?tab=orders").text
        points = ("--service=events", "--point=payments", "--point=prices")
        checked = run_holdfast("check", *points, HOLDFAST_DATA_DIR=str(data_dir))
        links.append(use_link_of_organizer(second))
        assert secrets_that_only_their_owner_reads(data_dir, second) == secrets
    assert "`holdfast up` takes demo payments" in checked.stdout.replace("\n" + " " * 19, " ")
    assert "0 wrong, 0 warnings" in checked.stdout
    assert links[0] != links[1]
    assert secrets_that_only_their_owner_reads(printed_dir, output) != secrets
    with run_up(data_dir, *ports, STRIPE_SECRET_KEY="sk_test_real", INVENTORY_CLIENT_ID="real") as third:
        assert not re.search("Demo (payments|shops)", third)


def payments_address(output: str) -> str:
    [address] = re.findall(r"^Demo payments +(http://\S+)$", output, re.MULTILINE)
    return address


def open_payout_account(data_dir: Path, output: str) -> str:
    """Open an account at the demo payments. Returns its id."""
    assert "Nothing was paid yet." in httpx2.get(payments_address(output)).text
    client = stripe.StripeClient(key(data_dir), base_addresses={"api": payments_address(output)})
    return client.v2.core.accounts.create(ACCOUNT_V2).id


def install_and_sell(output: str) -> None:
    """Install the app in the demo shop, and sell something there."""
    [shop] = re.findall(r"^  demo shop +(http://\S+/demo\.myshopify\.com)$", output, re.MULTILINE)
    [inventory] = re.findall(r"^Inventory +(http://\S+)$", output, re.MULTILINE)
    assert 'href="/demo.myshopify.com/admin/apps/holdfast"' in httpx2.get(shop).text
    assert f"  merchant       {shop}/admin/apps/holdfast\n" in output
    with httpx2.Client(follow_redirects=False) as browser:
        authorize_url = browser.get(f"{inventory}/auth?shop=demo.myshopify.com").headers["location"]
        assert authorize_url.startswith(f"{shop}/admin/oauth/authorize?")
        assert browser.get(browser.post(authorize_url).headers["location"]).status_code == 200
    assert httpx2.post(f"{shop}/sell", data={"variant": "1006"}).status_code == 303
    storefront = httpx2.get(f"{shop}/apps/holdfast/availability").json()
    assert "gid://shopify/ProductVariant/1006" in storefront["variants"]


def test_both_services_show_the_gallery_of_components(output: str) -> None:
    addresses = [*re.findall(r"^(?:Inventory|Events) +(http://\S+)$", output, re.MULTILINE)]

    assert f"  components     {addresses[1]}/components\n" in output
    for address in addresses:
        page = httpx2.get(f"{address}/components")
        scripts = re.findall(r'(?:src|href)="(/assets/[^"]+)"', page.text)
        assert "<h1>Components</h1>" in page.text
        assert {httpx2.get(address + script).status_code for script in scripts} == {200}


async def test_mails_are_shown_on_this_machine_only(output: str) -> None:
    [mails] = re.findall(r"^  mails +(http://\S+/mails)$", output, re.MULTILINE)
    assert mails.startswith(re.findall(r"^Events +(http://\S+)$", output, re.MULTILINE)[0])
    address = mails.removesuffix("/mails")
    async with httpx2.AsyncClient(base_url=address, follow_redirects=True) as browser:
        [token] = re.findall(r'name="token" value="(.+?)"', (await browser.get("/sign-in")).text)
        await browser.post("/sign-in", data={"token": token, "email": "ann@example.com"})

        async def is_listed() -> bool:
            return "ann@example.com" in (await browser.get(mails)).text

        await eventually(is_listed)
    assert httpx2.get(mails, headers={"Host": "evil.example"}).status_code == 421


def test_mails_are_not_shown_to_other_machines_or_beside_a_mail_server(data_dir: Path) -> None:
    ports = ("--inventory-port=0", "--events-port=0")
    others: tuple[tuple[tuple[str, ...], dict[str, str]], ...] = (
        ((*ports, "--host=0.0.0.0"), {}),
        (ports, {"SMTP_HOST": "127.0.0.1", "MAIL_FROM": "holdfast@example.com"}),
    )
    for arguments, settings in others:
        with run_up(data_dir, *arguments, **settings) as output:
            [port] = re.findall(r"^Events +http\S*?:(\d+)$", output, re.MULTILINE)
            assert not re.search("^  mails +http", output, re.MULTILINE)
            assert httpx2.get(f"http://127.0.0.1:{port}/mails").status_code == 404


def key(data_dir: Path) -> str:
    """What requests to the demo payments of a data directory have to name."""
    return load_or_create_secrets(data_dir / DEMO_PAYMENTS_FILE).api


def secrets_that_only_their_owner_reads(directory: Path, output: str) -> tuple[str, ...]:
    """The secrets of the demonstrations of a data directory, none of which is in its files for others or shown."""
    modes = {file.name: file.stat().st_mode & 0o077 for file in directory.glob("demo-*")}
    assert modes, "there are files of the demonstrations"
    assert {*modes.values()} == {0}, modes
    secrets = load_or_create_secrets(directory / DEMO_PAYMENTS_FILE)
    assert not [secret for secret in secrets if secret in output]
    return secrets


def test_pages_of_other_sites_cannot_use_the_demonstrations(output: str) -> None:
    for name in ("payments", "shops"):
        [address] = re.findall(rf"^Demo {name} +(http://\S+)$", output, re.MULTILINE)
        rebound = httpx2.get(address, headers={"Host": "evil.example"})
        posted = httpx2.post(address, headers={"Origin": "https://evil.example"})
        assert (rebound.status_code, posted.status_code, httpx2.get(address).status_code) == (421, 403, 200)


def use_link_of_organizer(output: str) -> str:
    """Sign in as the organizer of the demo, by a link that works once. Returns it."""
    [link] = re.findall(r"^  organizer +http://\S+(/sign-in/\S+)$", output, re.MULTILINE)
    [address] = re.findall(r"^Events +(http://\S+)$", output, re.MULTILINE)
    with httpx2.Client(base_url=address, follow_redirects=True) as browser:
        [token] = re.findall(r'name="token" value="(.+?)"', browser.get(link).text)
        assert browser.post(link, data={"token": token}).url.path == "/console"
    assert "This link has already been used." in httpx2.get(address + link).text
    assert re.search(r"^  a link +\S*holdfast events console-link demo-organizer$", output, re.MULTILINE)
    return link


def test_the_owner_of_the_demo_shop_is_named_with_a_link_and_how_to_get_another(output: str) -> None:
    [address] = re.findall(r"^Inventory +(http://\S+)$", output, re.MULTILINE)
    assert re.search(r"^  owner +merchant@example\.com$", output, re.MULTILINE)
    [link] = re.findall(r"^  console +http://\S+(/sign-in/\S+)$", output, re.MULTILINE)
    assert "inventory console-link demo.myshopify.com\n" in output
    assert "merchant@example.com" in httpx2.get(address + link).text


WITHOUT_EXTRA = "import sys; sys.modules['holdfast_demo'] = None; from holdfast.cli import main; main()"
"""Runs the command line as if the package holdfast-demo were not installed."""


def test_both_services_start_without_the_package_of_the_demo_and_say_what_is_left_out() -> None:
    environment = {**os.environ, "HOLDFAST_DATA_DIR": str(scratch_directory())}
    ports = ("--inventory-port=0", "--events-port=0")
    up = subprocess.Popen(
        [sys.executable, "-c", WITHOUT_EXTRA, "up", *ports], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert up.stdout
    try:
        output = startup_output(up.stdout)
    finally:
        stop(up)

    assert (
        "Demo data, payments and shops are left out. Demonstrations need the package holdfast-demo; docs/deploy.md"
        in output
    )
    assert re.findall(r"^(\w+)  http://", output, re.MULTILINE) == ["Inventory", "Events"]


@pytest.mark.parametrize("words", [("up", "--shops-port=0"), ("inventory", "platform-double", "--port=0"), ("demo",)])
def test_an_option_of_the_demo_without_its_package_is_refused(words: tuple[str, ...], data_dir: Path) -> None:
    environment = {**os.environ, "HOLDFAST_DATA_DIR": str(data_dir)}
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRA, *words], env=environment, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 1
    assert ended.stderr == "Demonstrations need the package holdfast-demo; docs/deploy.md says how to install it.\n"


@pytest.mark.usefixtures("output")
def test_files_of_postgresql_and_of_the_demo_are_readable_by_their_owner_only(printed_dir: Path) -> None:
    files = [printed_dir / "postgres.log", *printed_dir.glob("demo-*.sqlite*")]
    modes = {file.name: oct(file.stat().st_mode & 0o777) for file in files}
    assert {"postgres.log", "demo-payments.sqlite", "demo-shops.sqlite", "demo-shops.sqlite-wal"} <= modes.keys()
    assert set(modes.values()) == {"0o600"}, modes


def test_behind_a_base_url_demonstrations_start_only_if_their_ports_are_named_and_mails_are_not_shown(
    data_dir: Path,
) -> None:
    ports = ("--inventory-port=0", "--events-port=0")
    with run_up(data_dir, *ports, EVENTS_BASE_URL="https://events.example") as public:
        assert "Demo payments" not in public
        assert "Demo shops" not in public
        assert not re.search("^  mails +http", public, re.MULTILINE)
    with run_up(data_dir, *ports, "--payments-port=0", EVENTS_BASE_URL="https://events.example") as named:
        assert "Demo payments" in named
        assert "Demo shops" not in named


async def test_a_terminal_that_is_closed_during_the_start_leaves_no_postgresql() -> None:
    directory = scratch_directory()
    environment = {**os.environ, "HOLDFAST_DATA_DIR": str(directory)}
    up = await asyncio.create_subprocess_exec(HOLDFAST, "up", "--inventory-port=0", "--events-port=0", env=environment)
    files = directory / "postgres"
    await eventually((files / "postmaster.pid").exists)
    up.send_signal(signal.SIGHUP)
    async with asyncio.timeout(60):
        status = await up.wait()

    assert status == 128 + signal.SIGTERM
    assert not Cluster(files, directory / "postgres.log").answers
    assert not [*files.glob("postmaster.pid"), *files.glob(".s.PGSQL*")]


@pytest.mark.parametrize("words", [("--version",), ("--version", "up")])
def test_the_version_is_that_of_the_distribution(words: tuple[str, ...]) -> None:
    version, events, inventory = run_holdfast(*words).stdout.splitlines()

    assert version == f"holdfast-server {__version__}"
    for line, process in ((events, EVENTS), (inventory, INVENTORY)):
        of_files = [migration.name for migration in process.schema() if not WITHOUT_FILE.match(migration.name)]
        assert line.startswith(f"schema of {process.name}: {of_files[-1]}, accounts_")
        assert {*line.partition(": ")[2].split(", ")} <= {*of_files}
