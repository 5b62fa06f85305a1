//! Values beyond 128 bits over P4Runtime (1.4, section 8.4): written, read back, matched by packets, refused; sent by a
//! foreign controller and by our client.

use crate::support::raw::*;
use crate::support::*;
use p4lang::runtime::{ActionCall, FieldMatch, Match, TableEntry, Value};
use p4rt::client::{Client, PipelineAction, Query, UpdateType};
use p4rt::p4info::to_proto;
use p4rt::rpc::Code;
use p4rt::translate::Item;
use p4rt::v1;
use p4rt::v1::entity::Entity as Kind;
use p4rt::v1::field_match::{Exact, FieldMatchType, Lpm, Range, Ternary};
use p4rt::v1::p4_data::Data;
use p4rt::v1::stream_message_response::Update as Told;
use softswitch::dataplane::Loader;

/// The program under PSA and v1model.
fn programs() -> [Vec<u8>; 2] {
    let text = include_str!("../support/wide.p4");
    ["#define PSA\n", ""].map(|arch| format!("{arch}{text}").into_bytes())
}

/// A value of `bytes` bytes, all 0 except for the first and the last.
fn long(bytes: usize, first: u8, last: u8) -> Vec<u8> {
    let mut value = vec![0; bytes];
    value[0] = first;
    value[bytes - 1] = last;
    value
}

fn entry(raw: &Raw, table: &str, matched: FieldMatchType, params: &[&[u8]]) -> v1::TableEntry {
    let action = if params.len() == 2 { "set" } else { "mark" };
    let params = (1..)
        .zip(params)
        .map(|(param_id, value)| v1::action::Param {
            param_id,
            value: value.to_vec().into(),
        });
    let action = v1::Action {
        action_id: id(&raw.index.actions, &format!("MyIngress.{action}")),
        params: params.collect(),
    };
    v1::TableEntry {
        table_id: id(&raw.index.tables, &format!("MyIngress.{table}")),
        r#match: vec![v1::FieldMatch {
            field_id: 1,
            field_match_type: Some(matched),
        }],
        priority: i32::from(["by_ternary", "by_range"].contains(&table)),
        action: Some(v1::TableAction {
            r#type: Some(v1::table_action::Type::Action(action)),
        }),
        ..Default::default()
    }
}

fn exact(value: &[u8]) -> FieldMatchType {
    FieldMatchType::Exact(Exact {
        value: value.to_vec().into(),
    })
}

fn ternary(value: &[u8], mask: &[u8]) -> FieldMatchType {
    FieldMatchType::Ternary(Ternary {
        value: value.to_vec().into(),
        mask: mask.to_vec().into(),
    })
}

fn lpm(value: &[u8], prefix_len: i32) -> FieldMatchType {
    FieldMatchType::Lpm(Lpm {
        value: value.to_vec().into(),
        prefix_len,
    })
}

fn range(low: &[u8], high: &[u8]) -> FieldMatchType {
    FieldMatchType::Range(Range {
        low: low.to_vec().into(),
        high: high.to_vec().into(),
    })
}

/// The reason why an update is refused.
async fn refusal(raw: &mut Raw, entity: Kind) -> (Code, String) {
    let request = v1::WriteRequest {
        device_id: DEVICE,
        election_id: Some(v1::Uint128 { high: 0, low: 1 }),
        updates: vec![v1::Update {
            r#type: Insert.into(),
            entity: Some(v1::Entity {
                entity: Some(entity),
            }),
        }],
        ..Default::default()
    };
    let status = raw.grpc.write(request).await.expect_err("refused");
    let results = p4rt::status::results(&status, 1).expect("an error of the update");
    let error = results[0].as_ref().expect_err("refused");
    (error.code, error.message.clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn written_read_back_and_met() {
    for program in programs() {
        let (instance, one, two) = switch_running(&program);
        let mut raw = Raw::primary_of(&instance, &program).await;
        let learn = id(&raw.index.digests, "learn_t");
        let on = v1::DigestEntry {
            digest_id: learn,
            config: Some(v1::digest_entry::Config::default()),
        };
        raw.put(Insert, Kind::DigestEntry(on)).await;

        let (key, set) = (long(32, 0x80, 1), long(32, 0xc0, 3));
        let (value, mask) = (long(25, 0x80, 1), long(25, 0xf0, 0xff));
        let prefix = long(20, 0xab, 0);
        let (low, high) = (long(24, 1, 0), long(24, 1, 9));
        let entries = [
            entry(&raw, "by_exact", exact(&key), &[&set, &[1]]),
            entry(&raw, "by_ternary", ternary(&value, &mask), &[&[2]]),
            entry(&raw, "by_prefix", lpm(&prefix, 153), &[&[4]]),
            entry(&raw, "by_range", range(&low, &high), &[&[8]]),
        ];
        for entry in &entries {
            let entry = Kind::TableEntry(entry.clone());
            raw.put(Insert, entry.clone()).await;
            assert_eq!(raw.read(entry.clone()).await, [entry]);
        }
        let register_id = id(&raw.index.registers, "MyIngress.cells");
        let cell = |index, value: &[u8]| {
            Kind::RegisterEntry(v1::RegisterEntry {
                register_id,
                index: Some(v1::Index { index }),
                data: Some(v1::P4Data {
                    data: Some(Data::Bitstring(value.to_vec())),
                }),
            })
        };
        let kept = long(32, 0x40, 2);
        raw.put(Modify, cell(0, &kept)).await;

        // Longer than necessary: accepted, and read back in its canonical form.
        let padded = [&[0; 9][..], &long(32, 0, 7)].concat();
        raw.put(Modify, cell(1, &padded)).await;
        assert_eq!(raw.read(cell(1, &[])).await, [cell(1, &[7])]);

        let mut fields = [
            key.clone(),
            value.clone(),
            prefix.clone(),
            low.clone(),
            vec![0; 17],
            vec![0],
        ];
        assert!(one.send(&fields.concat()));
        fields[0] = long(32, 0xc0 ^ 0x40, 3 ^ 2);
        fields[5] = vec![0x0f];
        assert_eq!(two.receive(TIMEOUT), Some(fields.concat()));
        assert_eq!(raw.read(cell(1, &[])).await, [cell(1, &set)]);
        let Told::Digest(list) = raw.next().await else {
            panic!("a list")
        };
        let bits = |value: &[u8]| v1::P4Data {
            data: Some(Data::Bitstring(value.to_vec())),
        };
        let learnt = v1::P4StructLike {
            members: vec![bits(&value), bits(&[0x0f])],
        };
        let data = Some(Data::Struct(learnt));
        assert_eq!(list.data, [v1::P4Data { data }]);

        // Each key with one bit changed.
        fields = [
            long(32, 0x80, 0),
            long(25, 0x90, 1),
            long(20, 0xaa, 0),
            long(24, 1, 10),
            vec![0; 17],
            vec![0],
        ];
        assert!(one.send(&fields.concat()));
        fields[0] = long(32, 0x80 ^ 0x40, 2);
        assert_eq!(two.receive(TIMEOUT), Some(fields.concat()));

        for entry in entries {
            raw.put(Delete, Kind::TableEntry(entry)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn values_that_do_not_fit_are_refused() {
    for program in programs() {
        let (instance, ..) = switch_running(&program);
        let mut raw = Raw::primary_of(&instance, &program).await;
        let (whole, more) = (long(32, 1, 0), long(33, 1, 0));
        let cells = id(&raw.index.registers, "MyIngress.cells");
        let cell = Kind::RegisterEntry(v1::RegisterEntry {
            register_id: cells,
            index: Some(v1::Index { index: 0 }),
            data: Some(v1::P4Data {
                data: Some(Data::Bitstring(more.clone())),
            }),
        });
        let refused = [
            (
                entry(&raw, "by_exact", exact(&more), &[&whole, &[1]]),
                Code::OutOfRange,
                "`a`: the value does not fit into 256 bits",
            ),
            (
                entry(&raw, "by_exact", exact(&whole), &[&more, &[1]]),
                Code::OutOfRange,
                "`v`: the value does not fit into 256 bits",
            ),
            (
                entry(&raw, "by_exact", exact(&[]), &[&whole, &[1]]),
                Code::OutOfRange,
                "the byte string is empty",
            ),
            (
                entry(&raw, "by_ternary", ternary(&[1], &long(26, 1, 1)), &[&[1]]),
                Code::OutOfRange,
                "`t`: the value does not fit into 200 bits",
            ),
            (
                entry(
                    &raw,
                    "by_ternary",
                    ternary(&long(25, 8, 1), &long(25, 7, 1)),
                    &[&[1]],
                ),
                Code::InvalidArgument,
                "bits outside the mask are set",
            ),
            (
                entry(&raw, "by_prefix", lpm(&long(20, 1, 1), 159), &[&[1]]),
                Code::InvalidArgument,
                "bits after the first 159 are set",
            ),
            (
                entry(&raw, "by_prefix", lpm(&long(20, 1, 1), 161), &[&[1]]),
                Code::InvalidArgument,
                "prefix length 161 in a field of 160 bits",
            ),
            (
                entry(
                    &raw,
                    "by_range",
                    range(&long(24, 2, 0), &long(24, 1, 0)),
                    &[&[1]],
                ),
                Code::InvalidArgument,
                "is greater than",
            ),
            (
                entry(&raw, "by_range", range(&[0], &[0xff; 24]), &[&[1]]),
                Code::InvalidArgument,
                "leave the field out",
            ),
        ];
        for (entry, code, says) in refused {
            let (given, message) = refusal(&mut raw, Kind::TableEntry(entry)).await;
            assert_eq!(given, code, "{message}");
            assert!(message.contains(says), "{message}");
        }
        assert_eq!(raw.write(vec![(Modify, cell)]).await, [Code::OutOfRange]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn our_client_carries_them() {
    for program in programs() {
        let (instance, ..) = switch_running(&program);
        let loaded = loader().load(&program).unwrap_or_else(|e| panic!("{e}"));
        let mut client: Client = connect(&instance).await;
        let _events = client.become_primary(1).await.unwrap();
        let action = PipelineAction::VerifyAndCommit;
        let info = to_proto(&loaded.p4info);
        client.set_pipeline(action, info, program, 1).await.unwrap();
        let entry = Item::TableEntry(TableEntry {
            table: "MyIngress.by_exact".into(),
            key: vec![FieldMatch {
                field: "a".into(),
                value: Match::Exact(Value::prefix(256, 3)),
            }],
            priority: 0,
            action: ActionCall {
                name: "MyIngress.set".into(),
                params: vec![("v".into(), Value::ones(256)), ("m".into(), 1.into())],
            },
        });
        let cell = Item::Register {
            name: "MyIngress.cells".into(),
            index: Some(1),
            fields: vec![Value::prefix(256, 200)],
        };
        let written = [
            (UpdateType::Insert, entry.clone()),
            (UpdateType::Modify, cell.clone()),
        ];
        client.apply(&written).await.unwrap();
        let table = Some("MyIngress.by_exact".to_owned());
        let (name, index) = ("MyIngress.cells".to_owned(), Some(1));
        let queries = [Query::Entries { table }, Query::Register { name, index }];
        assert_eq!(client.read(&queries).await.unwrap(), [entry, cell]);
    }
}
