-- The mirror of leaky_bucket/mod.rs. Value: the TAT alone.

local leaky_bucket = keeps_a_tat
