-- Admits a request, atomically and in one round trip: checks that the account is not banned, that the key still belongs
-- to it, that the ledger has room, that enough RPM slots are left in the sliding minute, and what restricts the account.
-- Then takes a free request or reserves the maximum cost of the request.

-- include 'admission.lua'

return checkCaller() or checkLedger() or takeMinute() or reserve('')
