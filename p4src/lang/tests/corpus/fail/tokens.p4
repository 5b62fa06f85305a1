const bit<8> a = 8w;
const bit<8> b = 0xZZ;
const bit<8> c = 12ab;
const bit<8> d = 99999999999w1;
const string e = "not closed;
const bit<8> f = $g;
const bit<8> h = `1`;
/* not closed
