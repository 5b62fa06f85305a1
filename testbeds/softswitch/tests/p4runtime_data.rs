//! Elements of registers and digests that are no plain numbers, as a controller that is not ours writes and reads them.

mod support;

use p4rt::rpc::Code;
use p4rt::v1;
use p4rt::v1::entity::Entity as Kind;
use p4rt::v1::p4_data::Data;
use p4rt::v1::stream_message_response::Update as Told;
use support::raw::*;
use support::*;

const TYPED: &[u8] = include_bytes!("support/typed.p4");

fn data(data: Data) -> v1::P4Data {
    v1::P4Data { data: Some(data) }
}

fn bits(value: &[u8]) -> v1::P4Data {
    data(Data::Bitstring(value.to_vec()))
}

fn of(members: Vec<v1::P4Data>) -> v1::P4Data {
    data(Data::Struct(v1::P4StructLike { members }))
}

fn inner(a: u8, b: u8) -> v1::P4Data {
    of(vec![bits(&[a]), bits(&[b])])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cell_of_structs_and_translated_values() {
    let (instance, one, two) = switch_running(TYPED);
    let mut raw = Raw::primary_of(&instance, TYPED).await;
    let register_id = id(&raw.index.registers, "cells");
    let cell = |data: Option<v1::P4Data>| {
        Kind::RegisterEntry(v1::RegisterEntry {
            register_id,
            index: Some(v1::Index { index: 1 }),
            data,
        })
    };
    let value = |a: u8, wide: &[u8]| {
        of(vec![
            inner(a, 0xff),
            data(Data::Bool(true)),
            bits(b"blue"),
            bits(wide),
        ])
    };
    raw.put(Modify, cell(Some(value(6, &[1, 0xfe])))).await;
    assert_eq!(
        raw.read(cell(None)).await,
        [cell(Some(value(6, &[1, 0xfe])))]
    );
    let frame = vec![9; 60];
    assert!(one.send(&frame));
    assert_eq!(two.receive(TIMEOUT), Some(frame));
    assert_eq!(
        raw.read(cell(None)).await,
        [cell(Some(value(7, &[1, 0xfe])))],
        "the program's own field, and the others as they were"
    );
    let refused = vec![
        (Modify, cell(Some(value(0, &[2, 0])))),
        (Modify, cell(Some(inner(0, 0)))),
        (Modify, cell(None)),
    ];
    assert_eq!(
        raw.write(refused).await,
        [
            Code::OutOfRange,
            Code::InvalidArgument,
            Code::InvalidArgument
        ],
        "32 bits for the client, 9 in the program"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_digest_of_headers() {
    let (instance, one, _two) = switch_running(TYPED);
    let mut raw = Raw::primary_of(&instance, TYPED).await;
    let digest_id = id(&raw.index.digests, "learn_t");
    let on = v1::DigestEntry {
        digest_id,
        config: Some(v1::digest_entry::Config::default()),
    };
    raw.put(Insert, Kind::DigestEntry(on)).await;
    assert!(one.send(&frame_from([1, 2, 3, 4, 5, 6], 0x0800)));
    let Told::Digest(list) = raw.next().await else {
        panic!("a list")
    };
    let ethernet = v1::P4Header {
        is_valid: true,
        bitstrings: vec![
            vec![2, 0, 0, 0, 0, 1],
            vec![1, 2, 3, 4, 5, 6],
            vec![0x08, 0x00],
        ],
    };
    let expected = of(vec![
        bits(&[1, 2, 3, 4, 5, 6]),
        data(Data::Header(ethernet)),
        data(Data::Header(v1::P4Header::default())),
        inner(1, 0),
    ]);
    assert_eq!(list.data, [expected], "the tag is not there");
}
