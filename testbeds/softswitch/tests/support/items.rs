//! Entities by name, and the results of writing them.

use p4lang::runtime::*;
use p4rt::client::*;
use p4rt::rpc::Code;
use p4rt::translate::Item;

pub fn send(port: u128) -> ActionCall {
    ActionCall {
        name: "MyIngress.send".into(),
        params: vec![("port".into(), port.into())],
    }
}

pub fn forward(dst: u128, port: u128) -> Item {
    let key = vec![FieldMatch {
        field: "dst".into(),
        value: Match::exact(dst),
    }];
    Item::TableEntry(TableEntry {
        table: "MyIngress.forward".into(),
        key,
        priority: 0,
        action: send(port),
    })
}

pub fn group(id: u32, ports: &[u32]) -> Item {
    let replicas = ports
        .iter()
        .map(|&port| Replica { port, instance: 1 })
        .collect();
    Item::MulticastGroup(MulticastGroup { id, replicas })
}

pub fn cell(index: Option<u64>, sum: u128, bitmap: u128) -> Item {
    Item::Register {
        name: "MyIngress.cells".into(),
        index,
        fields: vec![sum.into(), bitmap.into()],
    }
}

pub fn frame(dst: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[5] = dst;
    frame
}

pub fn codes(results: &[p4rt::status::UpdateResult]) -> Vec<Option<Code>> {
    results
        .iter()
        .map(|result| result.as_ref().err().map(|error| error.code))
        .collect()
}

/// All entries except the program's own.
pub async fn entries(client: &Client) -> Vec<Item> {
    let all = client.read(&[Query::Entries { table: None }]).await;
    let written =
        |item: &Item| !matches!(item, Item::TableEntry(entry) if entry.table == "MyIngress.fixed");
    all.unwrap().into_iter().filter(written).collect()
}

pub fn flood(dst: u128, group: u128) -> Item {
    let Item::TableEntry(mut entry) = forward(dst, 0) else {
        unreachable!("forward makes entries")
    };
    entry.action = ActionCall {
        name: "MyIngress.flood".into(),
        params: vec![("group".into(), group.into())],
    };
    Item::TableEntry(entry)
}
