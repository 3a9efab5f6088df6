-- Addresses that may differ from the form in which they are compared (accounts/identities.py): few, among all merchants.
create index merchants_with_unusual_address on merchants (id)
 where email !~ '^[a-z0-9._+-]+@([a-z0-9-]+[.])+[a-z]+$' or email like '%xn--%';
