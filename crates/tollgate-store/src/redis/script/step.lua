-- How long keys are kept. A key outlives its use by at least `spare` milliseconds, since a clock
-- may step back, and until the end of a step of time: so that whoever moves a decimal TAT within
-- one step may leave the key's end as it is. All scripts have to agree on the step.

local STEP_US = 2000000
