//! Analysis that lints share: limits as written, and which limit covers which.

pub(crate) mod cover;
pub(crate) mod cover_index;
pub(crate) mod view;
pub(crate) mod written_params;
