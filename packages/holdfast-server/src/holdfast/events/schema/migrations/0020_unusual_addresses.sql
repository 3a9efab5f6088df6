-- Addresses that may differ from the form in which they are compared (accounts/identities.py): few, among all accounts.
create index users_with_unusual_address on users (id)
 where email !~ '^[a-z0-9._+-]+@([a-z0-9-]+[.])+[a-z]+$' or email like '%xn--%';
