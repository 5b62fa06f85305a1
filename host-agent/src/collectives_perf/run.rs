//! A rank that measures.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use collectives::cost::Model;
use collectives::cost::choose::choose;
use collectives::{Algorithm, Collective, Options, Schedule, build, offered};
use rdma::Provider;
use rdma::group::{Group, GroupOptions, Store};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::element::{Values, Work};
use super::sizes::Size;
use super::table::{HEAD, Row};
use super::{CollectivesPerfArgs, word};

/// How long a rank answers for what it sent last.
const GOODBYE: Duration = Duration::from_millis(300);
/// Links of the model that chooses: 1 Gb/s, 20 µs, and 2 µs for a message.
const MODEL: (u64, u64, u64) = (1_000_000_000, 20_000, 2_000);

/// Elements that are not what they have to be.
#[derive(Debug, thiserror::Error)]
#[error("{0} elements of all ranks are not what they have to be")]
pub struct Wrong(pub u64);

/// A size, and how it is carried out.
pub struct Case {
    size: Size,
    collective: Collective,
    algorithm: Algorithm,
    tiles: usize,
    schedule: Schedule,
}

/// Chooses for each size.
pub fn cases(args: &CollectivesPerfArgs, sizes: &[Size]) -> Result<Vec<Case>> {
    let (rate_bps, delay_ns, post_ns) = MODEL;
    let mut model = Model::star(args.ranks, rate_bps, delay_ns)?;
    model.post_ns = post_ns;
    let cases = sizes.iter().map(|size| {
        let collective = size.collective(args.kind, args.ranks, args.root);
        let has = offered(&collective, false);
        if let Some(algorithm) = args.algorithm {
            let words: Vec<&str> = has.iter().map(|algorithm| algorithm.word()).collect();
            ensure!(
                has.contains(&algorithm),
                "--algorithm {}: {} has {}",
                algorithm.word(),
                word(&args.kind),
                words.join(", ")
            );
        }
        let choice = choose(
            &collective,
            args.datatype.work().width,
            args.op.into(),
            &model,
        )?;
        let mut offers = choice.offers.into_iter();
        let offer = offers.find(|offer| args.algorithm.is_none_or(|of| of == offer.algorithm));
        let mut offer = offer.context("no schedule of this algorithm is small enough")?;
        let mut schedule = build(&collective, offer.algorithm, &offer.options)?;
        if let Some(tile) = spread(&schedule, args.qps) {
            offer.options.tile = Some(tile);
            let lens = (0..args.ranks)
                .map(|rank| collective.input_len(rank).max(collective.output_len(rank)));
            offer.tiles = lens.max().unwrap_or(0).div_ceil(tile);
            schedule = build(&collective, offer.algorithm, &offer.options)?;
        }
        Ok(Case {
            size: *size,
            schedule,
            collective,
            algorithm: offer.algorithm,
            tiles: offer.tiles,
        })
    });
    cases.collect()
}

/// Elements of a put, at most, so that several queue pairs have something to do; `None`: they have.
fn spread(schedule: &Schedule, queue_pairs: usize) -> Option<usize> {
    if queue_pairs == 1 {
        return None;
    }
    let longest = schedule.puts().map(|(.., len)| len).max()?;
    let least = LEAST_PUT / schedule.element_bytes;
    let tile = (longest / (TURNS * queue_pairs)).max(least);
    (tile < longest).then_some(tile)
}

/// Puts of a range by each queue pair, so that none waits long for another.
const TURNS: usize = 4;
/// Bytes of a put that is worth a message of its own.
const LEAST_PUT: usize = 1 << 16;

/// What is printed in the end.
#[derive(Serialize)]
struct Report<'r> {
    collective: String,
    rank: usize,
    ranks: usize,
    rows: &'r [Row],
    /// Elements of all ranks and sizes; none: nobody has looked.
    out_of_bounds: Option<u64>,
    average_busbw_gb_per_s: f64,
    took_s: f64,
    counters: serde_json::Map<String, serde_json::Value>,
}

/// Meets the others, measures all sizes, prints.
///
/// # Errors
/// [`Wrong`], or why it cannot be carried out.
pub fn run(
    args: &CollectivesPerfArgs,
    cases: &[Case],
    provider: &mut dyn Provider,
    store: &mut dyn Store,
) -> Result<()> {
    let told = numbers_of_all(args.ranks)?;
    let needs = |schedule: &Schedule| {
        let lens = schedule.programs[args.rank].lens;
        lens.iter().sum::<usize>() * schedule.element_bytes
    };
    let schedules = cases.iter().map(|case| &case.schedule).chain([&told]);
    let options = GroupOptions {
        rank: args.rank,
        ranks: args.ranks,
        capacity: schedules.map(needs).max().unwrap_or(0),
        queue_pairs: args.qps,
        window: args.window,
        mtu: args.mtu,
        patience: args.patience(),
    };
    let prints = args.rank == 0 && !args.json;
    let mut rank = Rank {
        args,
        group: Group::meet_in(provider, store, options)?,
        work: args.datatype.work(),
        values: Values {
            ranks: args.ranks,
            op: args.op.into(),
        },
        told: &told,
    };
    rank.agree(cases)?;
    if prints {
        println!("{}\n{HEAD}", rank.title());
    }
    let (began, mut rows) = (Instant::now(), Vec::new());
    for case in cases {
        let row = rank.measure(case)?;
        if prints {
            println!("{row}");
        }
        rows.push(row);
    }
    let took_s = began.elapsed().as_secs_f64();
    rank.group.linger(GOODBYE)?;
    let wrong = (args.check > 0).then(|| rows.iter().filter_map(|row| row.wrong).sum::<u64>());
    let busbw = rows.iter().map(|row| row.busbw_gb_per_s).sum::<f64>();
    let report = Report {
        collective: word(&args.kind),
        rank: args.rank,
        ranks: args.ranks,
        rows: &rows,
        out_of_bounds: wrong,
        average_busbw_gb_per_s: busbw / rows.len() as f64,
        took_s,
        counters: (rank.group.counters().iter())
            .map(|(name, count)| (name.to_owned(), count.into()))
            .collect(),
    };
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else if prints {
        report.print_end();
    }
    match wrong {
        Some(wrong @ 1..) => Err(Wrong(wrong).into()),
        _ => Ok(()),
    }
}

impl Report<'_> {
    fn print_end(&self) {
        match self.out_of_bounds {
            Some(0) => println!("# Out of bounds values : 0 OK"),
            Some(wrong) => println!("# Out of bounds values : {wrong} FAILED"),
            None => {}
        }
        let average = self.average_busbw_gb_per_s;
        println!("# Avg bus bandwidth    : {average:.6}");
    }
}

/// Two numbers of each rank, to all.
fn numbers_of_all(ranks: usize) -> Result<Schedule> {
    let options = Options {
        element_bytes: NUMBER,
        ..Options::default()
    };
    let gather = Collective::all_gather(ranks, NUMBERS);
    Ok(build(&gather, Algorithm::Direct, &options)?)
}

/// Bytes of a number, and numbers, that a rank tells.
const NUMBER: usize = 8;
const NUMBERS: usize = 2;

struct Rank<'r> {
    args: &'r CollectivesPerfArgs,
    group: Group<'r>,
    work: Work,
    values: Values,
    told: &'r Schedule,
}

impl Rank<'_> {
    fn title(&self) -> String {
        let args = self.args;
        let step = match args.stepfactor {
            Some(factor) => format!("{factor}(factor)"),
            None => format!("{}(bytes)", args.stepbytes),
        };
        format!(
            "# {} nRanks {} minBytes {} maxBytes {} step: {step} warmup iters: {} iters: {} validation: {}\n#",
            word(&args.kind),
            args.ranks,
            args.minbytes,
            args.maxbytes,
            args.warmup_iters,
            args.iters,
            args.check
        )
    }

    /// Whether all ranks were asked for the same.
    fn agree(&mut self, cases: &[Case]) -> Result<()> {
        let args = self.args;
        let mut asked = Sha256::new();
        let counts = [args.iters, args.warmup_iters, args.check];
        asked.update(format!("{:?} {:?} {counts:?}", args.kind, args.datatype));
        for case in cases {
            let Case {
                size,
                algorithm,
                tiles,
                schedule,
                ..
            } = case;
            let op = schedule.op;
            asked.update(format!(
                "{size:?} {} {tiles} {op:?} {}",
                algorithm.word(),
                args.root
            ));
        }
        let digest = asked.finalize();
        let mut own = [0; NUMBER];
        own.copy_from_slice(&digest[..NUMBER]);
        let all = self.tell([own, [0; NUMBER]])?;
        let differs = all.iter().position(|[other, _]| *other != own);
        match differs {
            Some(other) => anyhow::bail!(
                "rank {other} was given another collective, other sizes, numbers of times, types or algorithms than rank {}",
                args.rank
            ),
            None => Ok(()),
        }
    }

    fn measure(&mut self, case: &Case) -> Result<Row> {
        let args = self.args;
        let input = self.input(case);
        let output_at = input.len();
        self.group.put(0, &input);
        self.group.barrier()?;
        for _ in 0..args.warmup_iters {
            self.once(case)?;
        }
        let began = Instant::now();
        for _ in 0..args.iters {
            self.once(case)?;
        }
        let took_s = began.elapsed().as_secs_f64() / f64::from(args.iters);
        let mut wrong = 0;
        if args.check > 0 {
            let expected = self.expected(case);
            let mut output = vec![0xFF; expected.len()];
            for _ in 0..args.check {
                output.fill(0xFF);
                self.group.put(output_at, &output);
                self.group.barrier()?;
                self.once(case)?;
                self.group.copy_out(output_at, &mut output);
                wrong += self.work.differ(&expected, &output);
            }
        }
        let all = self.tell([took_s.to_le_bytes(), wrong.to_le_bytes()])?;
        let took_s = all.iter().map(|[took, _]| f64::from_le_bytes(*took));
        // As nccl-tests has it unless it is asked for another.
        let took_s = took_s.sum::<f64>() / all.len() as f64;
        let wrong = all
            .iter()
            .map(|[_, wrong]| u64::from_le_bytes(*wrong))
            .sum();
        let algbw = case.size.bytes as f64 / 1e9 / took_s;
        let has_root = args.kind.has_root();
        Ok(Row {
            size: case.size.bytes,
            count: case.size.count,
            data_type: word(&args.datatype),
            redop: match args.kind.reduces() {
                true => word(&args.op),
                false => "none".to_owned(),
            },
            root: if has_root { args.root as i64 } else { -1 },
            time_us: took_s * 1e6,
            algbw_gb_per_s: algbw,
            busbw_gb_per_s: algbw * args.kind.bus_factor(args.ranks),
            wrong: (args.check > 0).then_some(wrong),
            algorithm: case.algorithm.word(),
            tiles: case.tiles,
        })
    }

    /// And nobody's buffer is written before all have theirs.
    fn once(&mut self, case: &Case) -> Result<()> {
        let (op, combine) = (self.args.op.into(), self.work.combine);
        self.group.run(&case.schedule, &|target, source| {
            combine(op, target, source)
        })?;
        Ok(self.group.barrier()?)
    }

    fn input(&self, case: &Case) -> Vec<u8> {
        let rank = self.args.rank;
        let len = case.collective.input_len(rank);
        let mut bytes = Vec::with_capacity(len * self.work.width);
        for element in 0..len {
            (self.work.push)(&mut bytes, &self.values, &[rank], element);
        }
        bytes
    }

    fn expected(&self, case: &Case) -> Vec<u8> {
        let (rank, ranks, root) = (self.args.rank, self.args.ranks, self.args.root);
        let len = case.collective.output_len(rank);
        let mut bytes = Vec::with_capacity(len * self.work.width);
        let mut of = Vec::new();
        for at in 0..len {
            let element =
                (case.size).contributors(self.args.kind, [rank, ranks], root, at, &mut of);
            (self.work.push)(&mut bytes, &self.values, &of, element);
        }
        bytes
    }

    /// Two numbers of this rank to all, and theirs.
    fn tell(&mut self, own: [[u8; NUMBER]; NUMBERS]) -> Result<Vec<[[u8; NUMBER]; NUMBERS]>> {
        self.group.barrier()?;
        self.group.put(0, own.as_flattened());
        self.group.run(self.told, &|_, _| {})?;
        let mut all = vec![0; self.args.ranks * NUMBERS * NUMBER];
        self.group.copy_out(NUMBERS * NUMBER, &mut all);
        let (numbers, _) = all.as_chunks::<NUMBER>();
        let (ranks, _) = numbers.as_chunks::<NUMBERS>();
        let ranks = ranks.to_vec();
        self.group.barrier()?;
        Ok(ranks)
    }
}
