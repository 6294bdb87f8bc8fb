//! `on_store_failure`, for the file and for a limit.

use super::fields::number_u32;
use crate::diagnostic::Report;
use crate::limit::OnStoreFailure;
use crate::raw::{self, FailureWord, Field};

pub(super) fn on_store_failure(
    field: &Field<raw::OnStoreFailure>,
    report: &mut Report,
) -> Option<OnStoreFailure> {
    let field = field.as_ref()?;
    Some(match &field.value {
        raw::OnStoreFailure::Word(FailureWord::Open) => OnStoreFailure::Open,
        raw::OnStoreFailure::Word(FailureWord::Closed) => OnStoreFailure::Closed,
        raw::OnStoreFailure::Word(FailureWord::Local) => OnStoreFailure::Local { nodes: 1 },
        raw::OnStoreFailure::Form(form) => match &form.local {
            Some(local) => {
                OnStoreFailure::Local { nodes: number_u32(&local.nodes, 1, (1, u32::MAX), report) }
            }
            None => {
                super::fields::missing("local", (field.at, &form.unreadable), report);
                OnStoreFailure::Open
            }
        },
    })
}
