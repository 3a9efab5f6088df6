"""On pages no line ends within the word "e-mail": its hyphen is one at which browsers do not break."""

import pytest

from holdfast.kit.pages.site import Site


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ _('an e-mail') }}", "an e\N{NON-BREAKING HYPHEN}mail"),
        ("{{ _('an e-mail to %(name)s', name='Ann') }}", "an e\N{NON-BREAKING HYPHEN}mail to Ann"),
        ("{% trans name='Ann' %}an e-mail to {{ name }}{% endtrans %}", "an e\N{NON-BREAKING HYPHEN}mail to Ann"),
        (
            "{% trans count=2 %}{{ count }} e-mail{% pluralize %}{{ count }} e-mails{% endtrans %}",
            "2 e\N{NON-BREAKING HYPHEN}mails",
        ),
        ("{{ ['This is not an e-mail address.'] | worded }}", "This is not an e\N{NON-BREAKING HYPHEN}mail address."),
        ("{{ _('E-Mail') }}", "E\N{NON-BREAKING HYPHEN}Mail"),
        ("{{ 'e-mail@example.com' }}", "e-mail@example.com"),
    ],
)
def test_a_text_of_ours_does_not_break_within_e_mail_and_a_value_stays_as_it_is(template: str, text: str) -> None:
    environment = Site("Holdfast")._environments["en"]  # pyright: ignore[reportPrivateUsage] - pages render with it

    assert environment.from_string(template).render() == text
