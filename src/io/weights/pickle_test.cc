// Bare pickles, written out opcode by opcode, and what becomes of them.
#include "io/weights/pickle.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/limits.h"
#include "io/bytes/little_endian.h"
#include "io/weights/torch_file.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using Kind = Value::Kind;
using namespace std::string_literals;

Value Parse(const std::string& pickle) {
  return ParsePickle(std::as_bytes(std::span(pickle)), "test");
}

// The body of a pickle: without the protocol and the STOP.
Value Made(const std::string& body) { return Parse("\x80\x02" + body + "."); }

std::string ErrorOf(const std::string& pickle) {
  try {
    return "no error but " + Describe(Parse(pickle));
  } catch (const Error& error) {
    return error.message();
  }
}

void ExpectError(const std::string& body, const std::string& part) {
  const std::string message = ErrorOf("\x80\x02" + body + ".");
  EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks " << part;
}

std::string Text(const std::string& text) {
  std::string out = "X";
  AppendLittle(out, static_cast<uint32_t>(text.size()));
  return out + text;
}

TEST(Pickle, ReadsNumbers) {
  EXPECT_EQ(Made("N"), Value());
  EXPECT_EQ(Made("\x88"), Value::Bool(true));
  EXPECT_EQ(Made("\x89"), Value::Bool(false));
  EXPECT_EQ(Made("K\xff"), Value::Int(255));
  EXPECT_EQ(Made("M\xff\xff"), Value::Int(65535));
  EXPECT_EQ(Made("J\xfe\xff\xff\xff"), Value::Int(-2));
  EXPECT_EQ(Made("\x8a\x00"s), Value::Int(0));
  EXPECT_EQ(Made("\x8a\x01\x80"), Value::Int(-128));
  EXPECT_EQ(Made("\x8a\x02\x80\x00"s), Value::Int(128));
  EXPECT_EQ(Made("\x8a\x08\0\0\0\0\0\0\0\x80"s), Value::Int(INT64_MIN));
  EXPECT_EQ(Made("\x8b\x01\0\0\0\x05"s), Value::Int(5));
  EXPECT_EQ(Made("G\x3f\xf8\0\0\0\0\0\0"s), Value::Float(1.5));
  EXPECT_EQ(Made("G\xff\xf0\0\0\0\0\0\0"s), Value::Float(-INFINITY));
}

TEST(Pickle, KeepsBigIntegersAsText) {
  const auto text = [](const Value& value) {
    EXPECT_EQ(value.opaque().FullName(), "builtins.int");
    return value.opaque().args.at(0).AsText();
  };
  EXPECT_EQ(text(Made("\x8a\x09\0\0\0\0\0\0\0\0\x01"s)), "0x010000000000000000");
  EXPECT_EQ(text(Made("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\xff")), "-0x008000000000000001");
  EXPECT_EQ(text(Made("\x8a\x09\0\0\0\0\0\0\0\0\x80"s)), "-0x800000000000000000");
}

TEST(Pickle, ReadsTextsAndBytes) {
  EXPECT_EQ(Made(Text("ü")), Value::String("ü"));
  EXPECT_EQ(Made("\x8c\x02hi"), Value::String("hi"));
  EXPECT_EQ(Made("\x8d\x02\0\0\0\0\0\0\0hi"s), Value::String("hi"));
  EXPECT_EQ(Made("U\x02hi"), Value::String("hi"));
  EXPECT_EQ(Made("T\x02\0\0\0hi"s), Value::String("hi"));
  EXPECT_EQ(Made("C\x02\xff\0"s), Value::Bytes("\xff\0"s));
  EXPECT_EQ(Made("B\x02\0\0\0hi"s), Value::Bytes("hi"));
  EXPECT_EQ(Made("\x8e\x02\0\0\0\0\0\0\0hi"s), Value::Bytes("hi"));
  EXPECT_EQ(Made("\x96\x02\0\0\0\0\0\0\0hi"s), Value::Bytes("hi"));
  // Protocol 2 has calls instead.
  EXPECT_EQ(Made("c_codecs\nencode\n" + Text("a\xc3\xbf\xc2\x80") + Text("latin1") + "\x86R"),
            Value::Bytes("a\xff\x80"));
  EXPECT_EQ(Made("c__builtin__\nbytes\n)R"), Value::Bytes(""));
  EXPECT_EQ(Made("cbuiltins\nbytearray\nC\x01x\x85R"), Value::Bytes("x"));
  EXPECT_TRUE(Made("c_codecs\nencode\n" + Text("\xe2\x82\xac") + Text("latin1") + "\x86R")
                  .Is(Kind::kOpaque));
}

TEST(Pickle, ReadsContainers) {
  const Value one = Value::Int(1);
  const Value two = Value::Int(2);
  EXPECT_EQ(Made("]"), Value::List({}));
  EXPECT_EQ(Made("](K\x01K\x02"
                 "e"),
            Value::List({one, two}));
  EXPECT_EQ(Made("]K\x01"
                 "aK\x02"
                 "a"),
            Value::List({one, two}));
  EXPECT_EQ(Made(")"), Value::Tuple({}));
  EXPECT_EQ(Made("K\x01\x85"), Value::Tuple({one}));
  EXPECT_EQ(Made("K\x01K\x02\x86"), Value::Tuple({one, two}));
  EXPECT_EQ(Made("K\x01K\x02K\x01\x87"), Value::Tuple({one, two, one}));
  EXPECT_EQ(Made("(K\x01K\x02t"), Value::Tuple({one, two}));
}

TEST(Pickle, ReadsDictsAndSets) {
  const Value one = Value::Int(1);
  const Value two = Value::Int(2);
  EXPECT_EQ(Made("}"), Value::Dict({}));
  EXPECT_EQ(Made("}(K\x01K\x02K\x02Nu"), Value::Dict({{one, two}, {two, Value()}}));
  EXPECT_EQ(Made("}K\x01K\x02s"), Value::Dict({{one, two}}));
  EXPECT_EQ(Made("ccollections\nOrderedDict\n)RK\x01K\x02s"), Value::Dict({{one, two}}));
  EXPECT_EQ(Made("ccollections\nOrderedDict\n]](K\x01K\x02"
                 "ea\x85R"),
            Value::Dict({{one, two}}));
  EXPECT_EQ(Made("ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(K\x01K\x02u"),
            Value::Dict({{one, two}}));
  EXPECT_EQ(Made("ccollections\nCounter\n}K\x01K\x02s\x85R"), Value::Dict({{one, two}}));
  EXPECT_EQ(Made("\x8f(K\x01K\x02\x90"), Value::Set({one, two}));
  EXPECT_EQ(Made("(K\x01K\x02\x91"), Value::Set({one, two}));
  EXPECT_EQ(Made("c__builtin__\nset\n](K\x01K\x02"
                 "e\x85R"),
            Value::Set({one, two}));
  EXPECT_EQ(Made("cbuiltins\nfrozenset\n)R"), Value::Set({}));
  EXPECT_EQ(Made("ctorch\nSize\n(K\x01K\x02t\x85R"), Value::Tuple({one, two}));
}

TEST(Pickle, ReadsMemoAndStackOpcodes) {
  const Value one = Value::Int(1);
  EXPECT_EQ(Made("](K\x01q\x07h\x07"
                 "e"),
            Value::List({one, one}));
  EXPECT_EQ(Made("](K\x01r\xff\xff\xff\xffj\xff\xff\xff\xff"
                 "e"),
            Value::List({one, one}));
  EXPECT_EQ(Made("]\x94(K\x01\x94h\x01"
                 "e"),
            Value::List({one, one}));
  EXPECT_EQ(Made("](K\x01"
                 "2e"),
            Value::List({one, one}));
  EXPECT_EQ(Made("](K\x01K\x02"
                 "0e"),
            Value::List({one}));
  EXPECT_EQ(Made("K\x01(K\x02K\x03"
                 "1"),
            one);
  // What is added to a list after it was used shows in both places.
  EXPECT_EQ(Made("](]q\x01h\x01K\x01"
                 "aeh\x01"
                 "0"),
            Value::List({Value::List({one}), Value::List({one})}));
}

TEST(Pickle, ReadsLaterProtocols) {
  const std::string frame = "\x95\x07\0\0\0\0\0\0\0"s;
  for (const char protocol : {'\x04', '\x05'}) {
    EXPECT_EQ(Parse("\x80"s + protocol + frame +
                    "]\x94(K\x01"
                    "e."),
              Value::List({Value::Int(1)}));
  }
  const Value named = Made(
      "\x8c\x05numpy\x8c\x05"
      "dtype\x93");
  EXPECT_EQ(named.opaque().FullName(), "numpy.dtype");
  EXPECT_FALSE(named.opaque().called);
  const Value made = Made("cdatetime\ndate\nK\x01\x85}\x92");
  EXPECT_EQ(made.opaque().args, (Value::Items{Value::Int(1), Value::Dict({})}));
}

TEST(Pickle, NeverRunsWhatItNames) {
  const testing::TempFolder folder;
  const std::string mark = folder.File("was-run");
  const Value value = Made("cos\nsystem\n" + Text("touch " + mark) + "\x85R");
  ASSERT_TRUE(value.Is(Kind::kOpaque));
  EXPECT_EQ(value.opaque().FullName(), "os.system");
  EXPECT_EQ(value.opaque().args.at(0), Value::String("touch " + mark));
  EXPECT_FALSE(testing::Exists(mark));
  EXPECT_EQ(Describe(value), "object os.system");
}

TEST(Pickle, KeepsObjectsWithAllTheyWereTold) {
  const Value value = Made("cmy.mod\nThing\nK\x01\x85\x81}" + Text("a") +
                           "K\x02sb(K\x03"
                           "eK\x04K\x05s");
  const Opaque& opaque = value.opaque();
  EXPECT_EQ(opaque.FullName(), "my.mod.Thing");
  EXPECT_TRUE(opaque.called);
  EXPECT_EQ(opaque.args, Value::Items{Value::Int(1)});
  EXPECT_EQ(opaque.state.Get("a"), Value::Int(2));
  EXPECT_EQ(opaque.items, Value::Items{Value::Int(3)});
  EXPECT_EQ(opaque.pairs, (Value::Pairs{{Value::Int(4), Value::Int(5)}}));
  // A call of what another call gave.
  const Value second = Made("cfunctools\npartial\n)R)R");
  EXPECT_EQ(second.opaque().name, "");
  EXPECT_EQ(second.opaque().args.at(0).opaque().name, "partial");
}

TEST(Pickle, RefusesOtherProtocols) {
  EXPECT_NE(ErrorOf("").find("found no protocol mark"), std::string::npos);
  EXPECT_NE(ErrorOf("(dp0\n.").find("found no protocol mark"), std::string::npos);
  EXPECT_NE(ErrorOf("\x80\x06N.").find("found protocol 6"), std::string::npos);
  ExpectError("I01\n", "opcode 0x49");
  ExpectError("\x82\x01", "opcode 0x82");  // A registry of extensions that we do not have.
  ExpectError("\x97", "opcode 0x97");      // Buffers outside of the pickle.
}

TEST(Pickle, RefusesBrokenStreams) {
  EXPECT_NE(ErrorOf("\x80\x02N").find("found 0 bytes to the end"), std::string::npos);
  EXPECT_NE(ErrorOf("\x80\x02N.N").find("1 bytes follow the end"), std::string::npos);
  ExpectError("", "ends with 0 values");
  ExpectError("NN", "ends with 2 values");
  ExpectError("(N", "ends with 1 values");
  ExpectError("X\xff\xff\xff\xff", "expected 4294967295");
  ExpectError("\x8d\xff\xff\xff\xff\xff\xff\xff\xff", "expected 18446744073709551615");
  ExpectError("\x8b\xff\xff\xff\xff", "a whole number of -1 bytes");
  ExpectError("T\xff\xff\xff\xff", "a text of -1 bytes");
  ExpectError("\x95\xff\xff\xff\xff\xff\xff\xff\xff", "found a frame of 18446744073709551615");
  ExpectError(Text("\xff"), "is not UTF-8");
  ExpectError("c\xff\nx\n", "name of a class is not UTF-8");
  ExpectError("cos", "a name has no end");
}

TEST(Pickle, RefusesBrokenStacks) {
  ExpectError("a", "found 0 values on the stack, expected 1");
  ExpectError("t", "found no mark");
  ExpectError("N(\x85", "found 0 values on the stack, expected 1");
  ExpectError(
      "Nq\x01"
      "0h\x02",
      "memo 2 was never set");
  ExpectError("q\x01", "found 0 values on the stack");
  ExpectError("NNa", "added to something that is not a container");
  ExpectError("](K\x01K\x02u", "added to something that is not a container");
  ExpectError("}(K\x01u", "a key has no value");
  ExpectError("NNb", "a state for something that is not an object");
  ExpectError("NN\x93", "the name of a class is not a string");
  ExpectError("}(K\x01NK\x01Nu", "found key 1 twice");
  ExpectError("}(" + Text("k") + "N" + Text("k") + "Nu", "found key 'k' twice");
  ExpectError("NQ", "found None as the name of a storage");
}

TEST(Pickle, RefusesCyclesAndDepth) {
  ExpectError(
      "]q\x01h\x01"
      "a",
      "contains itself");
  ExpectError("]q\x01((K\x01h\x01te", "contains itself");
  EXPECT_EQ(Made(std::string(400, ']') + std::string(399, 'a')).items().size(), 1);
  ExpectError(std::string(100000, ']') + std::string(99999, 'a'), "nested over 500 deep");
}

// Thirty lists, each holding the one before twice, would be a billion values.
TEST(Pickle, RefusesRepetitionThatExplodes) {
  std::string body = "]q\x01";
  for (int i = 0; i < 30; ++i)
    body +=
        "q\x01"
        "0](h\x01h\x01"
        "e";
  ExpectError(body, "one value is repeated too often");
}

TEST(Pickle, RefusesTooManyValues) {
  std::string body = "](";
  for (size_t i = 0; i < Limits().values; ++i) body += "]0";
  body += "e";
  ExpectError(body, "keep large tables in tensors");
}

// Each of these takes a byte or two of the file and would take many more of memory.
TEST(Pickle, RefusesTooMuchOfAnything) {
  for (const char* piece : {"2", "(", "K\x01", "h\x01"}) {
    std::string body = "]q\x01";
    for (size_t i = 0; i <= Limits().values; ++i) body += piece;
    ExpectError(body, "--allow values=1M");
  }
  ExpectError("]" + std::string(Limits().values + 1, '\x94'), "--allow values=1M");
}

TEST(Pickle, RefusesTensorsWithoutAZip) {
  ExpectError(
      "(" + Text("storage") + "ctorch\nFloatStorage\n" + Text("0") + Text("cpu") + "K\x01tQ",
      "a tensor in a pickle without a zip");
}

TEST(Utf8, KnowsGoodFromBad) {
  EXPECT_TRUE(IsUtf8("aü€😀"));
  for (const char* bad : {"\x80", "\xc0\x80", "\xc3", "\xe2\x82", "\xf5\x80\x80\x80",
                          "\xe0\x80\x80", "\xf4\x90\x80\x80", "\xc3\x28"}) {
    EXPECT_FALSE(IsUtf8(bad, true)) << bad;
  }
  EXPECT_FALSE(IsUtf8("\xed\xa0\x80"));
  EXPECT_TRUE(IsUtf8("\xed\xa0\x80", true));
}

}  // namespace
}  // namespace kibitz::io
