-- The mirror of gcra/mod.rs. Value: the TAT alone.

local gcra = keeps_a_tat
