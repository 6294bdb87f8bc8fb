use super::{Primary, Votes};
use crate::redis::client::endpoint::ServerAddress;
use crate::{StoreError, StoreErrorKind};

fn at(port: u16, epoch: u64) -> Primary {
    Primary { address: ServerAddress::Tcp("h".into(), port), epoch }
}

fn votes(asked: usize, named: &[(u16, u64)]) -> Votes {
    let mut votes = Votes::new(asked);
    named.iter().for_each(|(port, epoch)| votes.add(at(*port, *epoch)));
    votes
}

fn ports(primaries: Vec<Primary>) -> Vec<u16> {
    let port = |primary: Primary| match primary.address {
        ServerAddress::Tcp(_, port) => port,
        ServerAddress::Unix(_) => 0,
    };
    primaries.into_iter().map(port).collect()
}

#[test]
fn connections_are_given_up_for_what_most_name() {
    let settled = at(1, 5);
    for (asked, named, moves_to) in [
        (3, &[(1, 5), (2, 6), (2, 6)][..], Some(2)),
        // A single sentinel cannot overrule the others.
        (3, &[(1, 5), (1, 5), (2, 99)][..], Some(1)),
        (3, &[(1, 5), (2, 99)][..], None),
        (2, &[(1, 5), (2, 99)][..], None),
        // Most of the answers count if they are newer. An older one comes from an isolated
        // sentinel.
        (3, &[(2, 6)][..], Some(2)),
        (3, &[(2, 5)][..], None),
        (3, &[(2, 0)][..], None),
        (5, &[(2, 6), (2, 6), (1, 5)][..], Some(2)),
        // A majority of all sentinels counts, even if their epochs start again.
        (3, &[(2, 0), (2, 0)][..], Some(2)),
        (1, &[(2, 0)][..], Some(2)),
        (3, &[][..], None),
    ] {
        let moves = votes(asked, named).new_primary(&settled);
        assert_eq!(moves.map(|one| ports(vec![one])[0]), moves_to, "{asked} {named:?}");
    }
}

#[test]
fn what_is_tried_begins_with_what_most_name_and_then_with_the_newest() {
    let split = votes(3, &[(1, 9), (2, 6), (2, 6)]);
    assert_eq!(ports(split.candidates(None, true)), [2, 1]);
    assert_eq!(ports(split.candidates(Some(&at(1, 5)), true)), [2, 1]);
    let stale = votes(3, &[(1, 5), (2, 6)]);
    assert_eq!(ports(stale.candidates(None, true)), [2, 1], "too few for a majority");
    let even = votes(5, &[(1, 5), (2, 5), (2, 5)]);
    assert_eq!(ports(even.candidates(None, true)), [2, 1], "as new, and named by more");
}

#[test]
fn what_one_sentinel_names_is_tried_only_by_whoever_has_no_connection() {
    let lone = votes(3, &[(1, 5), (1, 5), (2, 99)]);
    assert_eq!(ports(lone.candidates(Some(&at(1, 5)), false)), [1]);
    assert_eq!(ports(lone.candidates(Some(&at(1, 5)), true)), [1, 2]);
    let unknown = votes(3, &[(2, 5)]);
    assert_eq!(ports(unknown.candidates(Some(&at(1, 5)), false)), []);
    assert_eq!(ports(unknown.candidates(Some(&at(1, 5)), true)), [2]);
}

#[test]
fn a_failure_says_what_each_had_to_say() {
    let mut none = Votes::new(3);
    let sentinel = |port| ServerAddress::Tcp("s".into(), port);
    none.fail(
        &sentinel(1),
        StoreError::new(StoreErrorKind::Rejected, "NOAUTH: it wants a password"),
    );
    none.fail(
        &sentinel(2),
        StoreError::new(StoreErrorKind::Rejected, "NOAUTH: it wants a password"),
    );
    none.fail(&sentinel(3), StoreError::new(StoreErrorKind::Unreachable, "refused"));
    let error = none.failure("store").error;
    assert_eq!(error.kind, StoreErrorKind::Rejected, "what somebody has to change goes first");
    let says = "no sentinel says where the primary is; \
                s:1: NOAUTH: it wants a password, which is `sentinel.password`; s:3: refused";
    assert_eq!(&*error.detail, says);
    let torn = votes(3, &[(1, 5), (2, 5)]).failure("store").error;
    assert_eq!(torn.kind, StoreErrorKind::Unreachable);
    assert!(torn.detail.contains("do not agree on where store is"), "{torn}");
}
