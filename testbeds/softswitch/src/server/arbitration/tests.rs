//! Tests of the rules of arbitration and roles.

use super::*;

fn update(device_id: u64, election_id: u64) -> v1::MasterArbitrationUpdate {
    let election_id = (election_id != 0).then_some(v1::Uint128 {
        high: 0,
        low: election_id,
    });
    v1::MasterArbitrationUpdate {
        device_id,
        election_id,
        ..Default::default()
    }
}

fn id(low: u64) -> Option<v1::Uint128> {
    Some(v1::Uint128 { high: 0, low })
}

/// The clients that are notified, with the codes.
fn told(notices: &[Notice]) -> Vec<(ClientId, Code)> {
    let code = |notice: &v1::MasterArbitrationUpdate| {
        Code::try_from(notice.status.as_ref().unwrap().code).unwrap()
    };
    notices
        .iter()
        .map(|(id, notice)| (*id, code(notice)))
        .collect()
}

fn take_over(
    arbitration: &mut Arbitration,
    client: ClientId,
    election_id: u64,
) -> Vec<(ClientId, Code)> {
    let Ok(Step::TakeOver(mut notices, id)) = arbitration.update(client, &update(1, election_id))
    else {
        panic!("a takeover")
    };
    notices.extend(arbitration.complete(id));
    told(&notices)
}

fn notified(step: Result<Step, Status>) -> Vec<(ClientId, Code)> {
    match step {
        Ok(Step::Notify(notices)) => told(&notices),
        other => panic!("{other:?}"),
    }
}

fn refused(step: Result<Step, Status>) -> tonic::Code {
    step.unwrap_err().code()
}

#[test]
fn the_highest_election_id_is_primary() {
    let mut arbitration = Arbitration::new(1);
    assert_eq!(take_over(&mut arbitration, 10, 5), [(10, Code::Ok)]);
    assert_eq!(
        notified(arbitration.update(11, &update(1, 4))),
        [(11, Code::AlreadyExists)]
    );
    assert_eq!(
        take_over(&mut arbitration, 12, 6),
        [
            (10, Code::AlreadyExists),
            (11, Code::AlreadyExists),
            (12, Code::Ok)
        ]
    );
    assert!(arbitration.check_write(1, "", id(6)).is_ok());
    assert_eq!(
        arbitration.check_write(1, "", id(5)).unwrap_err().code(),
        tonic::Code::PermissionDenied
    );
    assert_eq!(
        arbitration.check_write(1, "", None).unwrap_err().code(),
        tonic::Code::PermissionDenied
    );
    assert_eq!(arbitration.receivers(&[]), [12]);
}

#[test]
fn a_lower_id_is_not_promoted_when_the_primary_leaves() {
    let mut arbitration = Arbitration::new(1);
    take_over(&mut arbitration, 10, 5);
    notified(arbitration.update(11, &update(1, 4)));
    assert_eq!(told(&arbitration.leave(10)), [(11, Code::NotFound)]);
    assert_eq!(
        arbitration.check_write(1, "", id(4)).unwrap_err().code(),
        tonic::Code::PermissionDenied
    );
    assert_eq!(
        notified(arbitration.update(11, &update(1, 4))),
        [(11, Code::NotFound)]
    );
    // The highest id ever seen, again.
    assert_eq!(
        take_over(&mut arbitration, 12, 5),
        [(11, Code::AlreadyExists), (12, Code::Ok)]
    );
}

#[test]
fn no_write_is_accepted_between_the_two_steps() {
    let mut arbitration = Arbitration::new(1);
    take_over(&mut arbitration, 10, 5);
    let Ok(Step::TakeOver(_, new)) = arbitration.update(11, &update(1, 6)) else {
        panic!("a takeover")
    };
    assert!(arbitration.check_write(1, "", id(5)).is_err());
    assert!(arbitration.check_write(1, "", id(6)).is_err());
    arbitration.complete(new);
    assert!(arbitration.check_write(1, "", id(6)).is_ok());
}

#[test]
fn an_outbid_or_abandoned_takeover_installs_no_primary() {
    let mut arbitration = Arbitration::new(1);
    assert!(matches!(
        arbitration.update(10, &update(1, 5)),
        Ok(Step::TakeOver(..))
    ));
    assert!(matches!(
        arbitration.update(11, &update(1, 6)),
        Ok(Step::TakeOver(..))
    ));
    // In either order of the steps, 11 is the current or next primary.
    assert_eq!(told(&arbitration.complete(10)), [(10, Code::AlreadyExists)]);
    assert_eq!(told(&arbitration.complete(11)), [(11, Code::Ok)]);
    assert_eq!(told(&arbitration.complete(10)), [(10, Code::AlreadyExists)]);
    assert!(matches!(
        arbitration.update(12, &update(1, 7)),
        Ok(Step::TakeOver(..))
    ));
    // The other clients have been notified that there is a primary.
    let abandoned = told(&arbitration.leave(12));
    assert_eq!(abandoned, [(10, Code::NotFound), (11, Code::NotFound)]);
    assert_eq!(arbitration.complete(12), []);
    assert!(arbitration.receivers(&[]).is_empty());
}

#[test]
fn clients_of_a_role_receive_its_config() {
    let mut arbitration = Arbitration::new(1);
    let config = RoleConfig {
        shared_p4_ids: vec![3],
        ..Default::default()
    };
    let sent = role("sdn", 2, &config);
    claim_with(&mut arbitration, 10, &sent).unwrap();
    let listens = v1::MasterArbitrationUpdate {
        election_id: None,
        ..sent.clone()
    };
    let Ok(Step::Notify(notices)) = arbitration.update(11, &listens) else {
        panic!("a notice")
    };
    assert_eq!(notices[0].1.role, sent.role);
    // A backup's config does not change the role.
    let mut other = listens;
    other.role = role("sdn", 0, &RoleConfig::default()).role;
    notified(arbitration.update(11, &other));
    assert_eq!(arbitration.leave(10)[0].1.role, sent.role);
    let mut large = sent;
    if let Some(any) = large.role.as_mut().and_then(|role| role.config.as_mut()) {
        any.value = vec![0; 65 << 10];
    }
    let step = arbitration.update(12, &large);
    assert_eq!(refused(step), tonic::Code::InvalidArgument);
}

#[test]
fn a_primary_may_step_down() {
    let mut arbitration = Arbitration::new(1);
    take_over(&mut arbitration, 10, 5);
    notified(arbitration.update(11, &update(1, 4)));
    let stepped_down = notified(arbitration.update(10, &update(1, 3)));
    assert_eq!(stepped_down, [(10, Code::NotFound), (11, Code::NotFound)]);
    assert!(!arbitration.is_primary(10));
}

#[test]
fn without_an_election_id_a_client_only_listens() {
    let mut arbitration = Arbitration::new(1);
    let Ok(Step::Notify(notices)) = arbitration.update(10, &update(1, 0)) else {
        panic!("a notice")
    };
    assert_eq!(told(&notices), [(10, Code::NotFound)]);
    assert_eq!(notices[0].1.election_id, None, "no primary has been seen");
}

#[test]
fn streams_that_break_the_rules_end() {
    let mut arbitration = Arbitration::new(1);
    assert_eq!(
        refused(arbitration.update(10, &update(2, 5))),
        tonic::Code::NotFound
    );
    take_over(&mut arbitration, 10, 5);
    assert_eq!(
        refused(arbitration.update(10, &update(2, 5))),
        tonic::Code::FailedPrecondition
    );
    assert_eq!(
        refused(arbitration.update(11, &update(1, 5))),
        tonic::Code::InvalidArgument
    );
    let mut other_role = update(1, 5);
    other_role.role = Some(v1::Role {
        name: "sdn".into(),
        ..Default::default()
    });
    assert_eq!(
        refused(arbitration.update(10, &other_role)),
        tonic::Code::FailedPrecondition
    );
    assert_eq!(
        take_over(&mut arbitration, 10, 5),
        [(10, Code::Ok)],
        "its own id again is fine"
    );
}

#[test]
fn roles_are_apart() {
    let mut arbitration = Arbitration::new(1);
    take_over(&mut arbitration, 10, 5);
    let mut sdn = update(1, 5);
    sdn.role = Some(v1::Role {
        name: "sdn".into(),
        ..Default::default()
    });
    assert!(
        matches!(arbitration.update(11, &sdn), Ok(Step::TakeOver(notices, 11)) if notices.is_empty())
    );
    arbitration.complete(11);
    assert!(arbitration.is_primary(10) && arbitration.is_primary(11));
    assert!(arbitration.check_write(1, "sdn", id(5)).is_ok());
    assert_eq!(
        arbitration
            .check_write(1, "gone", id(5))
            .unwrap_err()
            .code(),
        tonic::Code::NotFound
    );
    assert_eq!(
        arbitration.check_write(7, "", id(5)).unwrap_err().code(),
        tonic::Code::NotFound
    );
}

fn role(name: &str, election_id: u64, config: &RoleConfig) -> v1::MasterArbitrationUpdate {
    use prost::Message as _;
    let config = prost_types::Any {
        type_url: "type.googleapis.com/stratum.P4RoleConfig".into(),
        value: config.encode_to_vec(),
    };
    v1::MasterArbitrationUpdate {
        role: Some(v1::Role {
            name: name.into(),
            config: Some(config),
            ..Default::default()
        }),
        ..update(1, election_id)
    }
}

fn claim(
    arbitration: &mut Arbitration,
    client: ClientId,
    name: &str,
    config: &RoleConfig,
) -> Result<(), tonic::Code> {
    claim_with(arbitration, client, &role(name, 1, config))
}

fn claim_with(
    arbitration: &mut Arbitration,
    client: ClientId,
    update: &v1::MasterArbitrationUpdate,
) -> Result<(), tonic::Code> {
    let step = arbitration.update(client, update);
    match step.map_err(|status| status.code())? {
        Step::TakeOver(_, client) => drop(arbitration.complete(client)),
        Step::Notify(_) => panic!("a takeover"),
    }
    Ok(())
}

#[test]
fn a_role_has_the_rights_of_its_config() {
    let mut arbitration = Arbitration::new(1);
    take_over(&mut arbitration, 10, 5);
    let routing = RoleConfig {
        exclusive_p4_ids: vec![1, 2],
        shared_p4_ids: vec![3],
        receives_packet_ins: true,
        packet_in_filter: Some(role::PacketFilter {
            metadata_id: 7,
            value: vec![4],
        }),
        ..Default::default()
    };
    claim(&mut arbitration, 11, "routing", &routing).unwrap();
    let access = arbitration.access("routing");
    assert_eq!(
        [1, 2, 3, 4].map(|id| access.has(id)),
        [true, true, true, false]
    );
    let full = arbitration.access("");
    assert_eq!(
        [1, 2, 3, 4].map(|id| full.has(id)),
        [false, false, true, true]
    );
    assert_eq!(
        [1, 4].map(|id| (access.reads(id), full.reads(id))),
        [(true, true), (false, true)]
    );
    assert_eq!(arbitration.holders(1), [11]);
    assert_eq!(arbitration.holders(3), [10, 11]);
    let metadata = |value| v1::PacketMetadata {
        metadata_id: 7,
        value: vec![value],
    };
    assert_eq!(arbitration.receivers(&[metadata(4)]), [10, 11]);
    assert_eq!(arbitration.receivers(&[metadata(5)]), [10]);
    assert!(arbitration.check_push("").is_ok());
    let refused = arbitration.check_push("routing").unwrap_err();
    assert_eq!(refused.code(), tonic::Code::PermissionDenied);

    let greedy = RoleConfig {
        shared_p4_ids: vec![2],
        ..Default::default()
    };
    assert_eq!(
        claim(&mut arbitration, 12, "acl", &greedy),
        Err(tonic::Code::InvalidArgument)
    );
    // Without a client of the role, its exclusive objects are free.
    arbitration.leave(11);
    assert!(arbitration.access("").has(1));
    claim(&mut arbitration, 12, "acl", &greedy).unwrap();
}

#[test]
fn a_config_of_another_scheme_is_refused() {
    let mut arbitration = Arbitration::new(1);
    let mut other = role("sdn", 1, &RoleConfig::default());
    if let Some(any) = other.role.as_mut().and_then(|role| role.config.as_mut()) {
        any.type_url = "type.googleapis.com/other.Config".into();
    }
    assert_eq!(
        refused(arbitration.update(1, &other)),
        tonic::Code::InvalidArgument
    );
    let default = role("", 1, &RoleConfig::default());
    assert_eq!(
        refused(arbitration.update(1, &default)),
        tonic::Code::InvalidArgument
    );
}
