"""A lease has few shards with many mails, or many shards with few mails."""

from holdfast.kit.mail.lease_size import LeaseSize


def test_few_mails_are_leased_from_many_shards_and_many_mails_from_one() -> None:
    size = LeaseSize()
    few = size.shards

    for _ in range(5):
        size.note_due(size.mails, limit=size.mails)
    many = size.shards
    for _ in range(5):
        size.note_due(1, limit=size.mails)

    assert (few, many, size.shards) == (8, 1, 8)


def test_a_lease_has_as_many_mails_as_leave_within_a_second() -> None:
    size = LeaseSize()

    sizes: list[int] = []
    for seconds in (0.01, 0.5, 4.0):
        size.note_duration(8, seconds)
        sizes.append(size.mails)

    assert sizes == [32, 16, 8]
