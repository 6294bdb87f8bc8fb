pub(crate) mod simulate;
