//! One rank of a collective benchmark: it meets the other ranks, measures, checks and prints.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use collectives::cost::Model;
use collectives::cost::choose::choose;
use collectives::{Algorithm, Collective, Options, Schedule, build, offered};
use rdma::Provider;
use rdma::group::{Group, GroupOptions, Store};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::element::{DataType, Op, Values};
use super::sizes::{InPlace, Kind, Move, Range, Size};
use super::table::{HEAD, Row, Timing};
use super::{CollectivesPerfArgs, Root, word};

/// Time for which a rank that has finished continues to answer the other ranks.
const GOODBYE: Duration = Duration::from_millis(300);
/// Cost model that chooses the algorithm: a link's rate in bit/s and delay in ns, and a rank's time per message in ns.
const MODEL: (u64, u64, u64) = (1_000_000_000, 20_000, 2_000);

/// The benchmark's results have this number of wrong elements.
#[derive(Debug, thiserror::Error)]
#[error("{0} elements of all ranks are wrong")]
pub struct Wrong(pub u64);

/// One measurement of the benchmark: a message size, and the schedule (sequence of transfers) of the collective.
pub struct Case {
    size: Size,
    data_type: DataType,
    op: Op,
    root: usize,
    collective: Collective,
    algorithm: Algorithm,
    tiles: usize,
    schedule: Schedule,
}

/// All measurements, in nccl-tests' order: by element type, reduction and root, each with all sizes.
pub fn cases(args: &CollectivesPerfArgs, range: Range) -> Result<Vec<Case>> {
    let (rate_bps, delay_ns, post_ns) = MODEL;
    let mut model = Model::star(args.ranks, rate_bps, delay_ns)?;
    model.post_ns = post_ns;
    // A barrier has no values, and a collective without reduction has no operation.
    let types = match args.kind {
        Kind::Barrier => &args.datatype.0[..1],
        _ => &args.datatype.0,
    };
    let ops = match args.kind.reduces() {
        true => &args.op.0,
        false => &args.op.0[..1],
    };
    let roots = match args.root {
        Root::All if args.kind.has_root() => 0..args.ranks,
        Root::All => 0..1,
        Root::Rank(root) => root..root + 1,
    };
    let mut cases = Vec::new();
    for data_type in types {
        let sizes = range.sizes(args.kind, args.ranks, data_type.work().width)?;
        for op in ops {
            for root in roots.clone() {
                for size in &sizes {
                    cases.push(case(args, &model, *size, (*data_type, *op, root))?);
                }
            }
        }
    }
    Ok(cases)
}

/// Chooses the algorithm and schedule of one measurement.
fn case(
    args: &CollectivesPerfArgs,
    model: &Model,
    size: Size,
    (data_type, op, root): (DataType, Op, usize),
) -> Result<Case> {
    let collective = size.collective(args.kind, args.ranks, root);
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
    let choice = choose(&collective, data_type.work().width, op.into(), model)?;
    let mut offers = choice.offers.into_iter();
    let offer = offers.find(|offer| args.algorithm.is_none_or(|of| of == offer.algorithm));
    let mut offer = offer.context("no schedule of this algorithm is small enough")?;
    let mut schedule = build(&collective, offer.algorithm, &offer.options)?;
    if let Some(tile) = spread(&schedule, args.qps) {
        offer.options.tile = Some(tile);
        let lens =
            (0..args.ranks).map(|rank| collective.input_len(rank).max(collective.output_len(rank)));
        offer.tiles = lens.max().unwrap_or(0).div_ceil(tile);
        schedule = build(&collective, offer.algorithm, &offer.options)?;
    }
    Ok(Case {
        size,
        data_type,
        op,
        root,
        schedule,
        collective,
        algorithm: offer.algorithm,
        tiles: offer.tiles,
    })
}

/// Maximum number of elements per put (one RDMA WRITE) so that puts fill all queue pairs; `None` if they need not be cut.
fn spread(schedule: &Schedule, queue_pairs: usize) -> Option<usize> {
    if queue_pairs == 1 {
        return None;
    }
    let longest = schedule.puts().map(|(.., len)| len).max()?;
    let least = LEAST_PUT / schedule.element_bytes;
    let tile = (longest / (TURNS * queue_pairs)).max(least);
    (tile < longest).then_some(tile)
}

/// Number of puts (RDMA WRITEs) per queue pair into which the longest put is cut, so that none waits long for another.
const TURNS: usize = 4;
/// Minimum length in bytes of such a put: below it, a message of its own is not worth the cost.
const LEAST_PUT: usize = 1 << 16;

/// Results of the benchmark as JSON.
#[derive(Serialize)]
struct Report<'r> {
    collective: String,
    rank: usize,
    ranks: usize,
    rows: &'r [Row],
    /// Number of wrong elements over all ranks and sizes; `None` if results are not checked.
    out_of_bounds: Option<u64>,
    average_busbw_gb_per_s: f64,
    took_s: f64,
    counters: serde_json::Map<String, serde_json::Value>,
}

/// Meets the other ranks, measures all sizes, and prints the results.
///
/// # Errors
/// [`Wrong`], or the reason why the benchmark failed.
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
    let timings = || {
        rows.iter()
            .flat_map(|row| [&row.out_of_place, &row.in_place])
    };
    let wrong = (args.check > 0).then(|| timings().filter_map(|of| of.wrong).sum::<u64>());
    let busbw = timings().map(|of| of.busbw_gb_per_s).sum::<f64>();
    let report = Report {
        collective: word(&args.kind),
        rank: args.rank,
        ranks: args.ranks,
        rows: &rows,
        out_of_bounds: wrong,
        average_busbw_gb_per_s: busbw / timings().count() as f64,
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

/// Schedule of an all-gather of [`NUMBERS`] numbers per rank, which ranks use to exchange results.
fn numbers_of_all(ranks: usize) -> Result<Schedule> {
    let options = Options {
        element_bytes: NUMBER,
        ..Options::default()
    };
    let gather = Collective::all_gather(ranks, NUMBERS);
    Ok(build(&gather, Algorithm::Direct, &options)?)
}

/// Length of an exchanged number in bytes, and count of numbers per rank.
const NUMBER: usize = 8;
const NUMBERS: usize = 2;

struct Rank<'r> {
    args: &'r CollectivesPerfArgs,
    group: Group<'r>,
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

    /// Checks that all ranks were started with the same options.
    fn agree(&mut self, cases: &[Case]) -> Result<()> {
        let args = self.args;
        let mut asked = Sha256::new();
        let counts = [args.iters, args.warmup_iters, args.check];
        asked.update(format!("{:?} {counts:?}", args.kind));
        for case in cases {
            let Case {
                size,
                data_type,
                root,
                algorithm,
                tiles,
                schedule,
                ..
            } = case;
            let op = schedule.op;
            asked.update(format!(
                "{size:?} {data_type:?} {} {tiles} {op:?} {root}",
                algorithm.word()
            ));
        }
        let digest = asked.finalize();
        let mut own = [0; NUMBER];
        own.copy_from_slice(&digest[..NUMBER]);
        let all = self.exchange([own, [0; NUMBER]])?;
        let differs = all.iter().position(|[other, _]| *other != own);
        match differs {
            Some(other) => anyhow::bail!(
                "rank {other} has another collective, other sizes, iterations, types or algorithms than rank {}",
                args.rank
            ),
            None => Ok(()),
        }
    }

    fn measure(&mut self, case: &Case) -> Result<Row> {
        let args = self.args;
        let out_of_place = self.time(case, None)?;
        let rank = args.rank;
        let lens = [
            case.collective.input_len(rank),
            case.collective.output_len(rank),
        ];
        let in_place = case.size.in_place(args.kind, rank, lens);
        let in_place = self.time(case, Some(in_place))?;
        Ok(Row {
            size: case.size.bytes,
            count: case.size.count,
            data_type: word(&case.data_type),
            redop: match args.kind.reduces() {
                true => word(&case.op),
                false => "none".to_owned(),
            },
            root: if args.kind.has_root() {
                case.root as i64
            } else {
                -1
            },
            out_of_place,
            in_place,
            algorithm: case.algorithm.word(),
            tiles: case.tiles,
        })
    }

    /// Measures one size, with a single buffer for input and output (`in_place`), or with two buffers.
    fn time(&mut self, case: &Case, in_place: Option<InPlace>) -> Result<Timing> {
        let args = self.args;
        let input = self.input(case);
        self.fill(case, &input, in_place);
        self.group.barrier()?;
        for _ in 0..args.warmup_iters {
            self.once(case, in_place)?;
        }
        let began = Instant::now();
        for _ in 0..args.iters {
            self.once(case, in_place)?;
        }
        let took_s = began.elapsed().as_secs_f64() / f64::from(args.iters);
        let mut wrong = 0;
        if args.check > 0 {
            let work = case.data_type.work();
            let expected = self.expected(case);
            let result = in_place.map_or(input.len(), |of| of.result * work.width);
            let mut output = vec![0; expected.len()];
            for _ in 0..args.check {
                // Remains of an earlier run must not count as a result.
                self.group.put(input.len(), &vec![0xFF; expected.len()]);
                self.fill(case, &input, in_place);
                self.group.barrier()?;
                self.once(case, in_place)?;
                self.group.copy_out(result, &mut output);
                wrong += work.differ(&expected, &output);
            }
        }
        let all = self.exchange([took_s.to_le_bytes(), wrong.to_le_bytes()])?;
        let took_s = all.iter().map(|[took, _]| f64::from_le_bytes(*took));
        // The average, nccl-tests' default.
        let took_s = took_s.sum::<f64>() / all.len() as f64;
        let wrong = all
            .iter()
            .map(|[_, wrong]| u64::from_le_bytes(*wrong))
            .sum();
        let algbw = case.size.bytes as f64 / 1e9 / took_s;
        Ok(Timing {
            time_us: took_s * 1e6,
            algbw_gb_per_s: algbw,
            busbw_gb_per_s: algbw * args.kind.bus_factor(args.ranks),
            wrong: (args.check > 0).then_some(wrong),
        })
    }

    /// Writes the input to where the collective reads it, or to its place in the single buffer (`in_place`).
    fn fill(&mut self, case: &Case, input: &[u8], in_place: Option<InPlace>) {
        let width = case.data_type.work().width;
        match in_place.and_then(|of| of.before) {
            Some(before) => {
                self.group.put(0, &vec![0xFF; input.len()]);
                self.group.put(before.from * width, input);
            }
            None => self.group.put(0, input),
        }
    }

    /// Runs the collective once, and then a barrier, so that no buffer is overwritten before all ranks have finished.
    fn once(&mut self, case: &Case, in_place: Option<InPlace>) -> Result<()> {
        let (op, work) = (case.op.into(), case.data_type.work());
        let (before, after) = in_place.map_or((None, None), |of| (of.before, of.after));
        self.carry(before, work.width);
        self.group.run(&case.schedule, &|target, source| {
            (work.combine)(op, target, source)
        })?;
        self.carry(after, work.width);
        Ok(self.group.barrier()?)
    }

    fn carry(&mut self, part: Option<Move>, width: usize) {
        let Some(Move { from, to, len }) = part else {
            return;
        };
        let mut bytes = vec![0; len * width];
        self.group.copy_out(from * width, &mut bytes);
        self.group.put(to * width, &bytes);
    }

    fn values(&self, case: &Case) -> Values {
        Values {
            ranks: self.args.ranks,
            op: case.op.into(),
        }
    }

    fn input(&self, case: &Case) -> Vec<u8> {
        let (rank, work, values) = (self.args.rank, case.data_type.work(), self.values(case));
        let len = case.collective.input_len(rank);
        let mut bytes = Vec::with_capacity(len * work.width);
        for element in 0..len {
            (work.push)(&mut bytes, &values, &[rank], element);
        }
        bytes
    }

    fn expected(&self, case: &Case) -> Vec<u8> {
        let (rank, ranks, root) = (self.args.rank, self.args.ranks, case.root);
        let (work, values) = (case.data_type.work(), self.values(case));
        let len = case.collective.output_len(rank);
        let mut bytes = Vec::with_capacity(len * work.width);
        let mut of = Vec::new();
        for at in 0..len {
            let element =
                (case.size).contributors(self.args.kind, [rank, ranks], root, at, &mut of);
            (work.push)(&mut bytes, &values, &of, element);
        }
        bytes
    }

    /// Exchanges numbers with all ranks; returns those of each rank, by rank number.
    fn exchange(&mut self, own: [[u8; NUMBER]; NUMBERS]) -> Result<Vec<[[u8; NUMBER]; NUMBERS]>> {
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
