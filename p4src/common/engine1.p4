// One fault in ingress and one in egress: what the stages of a Tofino have room for beside the aggregator.
control FaultEngine(inout metadata_t meta) {
    FaultUnit() u0;
    apply {
        u0.apply(meta);
    }
}

control EgressFaultEngine(inout metadata_t meta) {
    FaultUnit() u0;
    apply {
        u0.apply(meta);
    }
}
