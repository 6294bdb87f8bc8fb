-- The step of key TTLs. A key outlives its use by at least `ttl_margin` milliseconds, since a clock
-- may step back, and until the end of a step: so a script that moves a TAT within one step need not
-- change the TTL. All scripts must agree on the step.

local STEP_US = 2000000

-- How long a reset is remembered: as in memory.
local RESET_US, RESET_SIGN = 3600000000, 64
