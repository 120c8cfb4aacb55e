import test from 'ava';
import { escapeXml, parseXml } from '../../../../scripts/embedded/s3/xml.ts';

test('escaped text is parsed back to the same text, including white space and entities', (t) => {
  const text = ' a<b>&"\'\t\n\u{1f600} &amp; ]]> ';
  t.is(parseXml(Buffer.from(`<Key>${escapeXml(text)}</Key>`)).text, text);
});

test('a document with prolog, comment, CDATA, prefixes and references is parsed', (t) => {
  const root = parseXml(
    Buffer.from(
      `<?xml version="1.0"?>\n<!-- c --><s3:Delete xmlns:s3='x'><Quiet/><Key>a&#x41;&#66;<![CDATA[<&]]></Key></s3:Delete>\n`,
    ),
  );
  t.is(root.name, 'Delete');
  t.deepEqual(
    root.children.map(({ name, text }) => [name, text]),
    [
      ['Quiet', ''],
      ['Key', 'aAB<&'],
    ],
  );
});

const malformed = {
  'an empty body': '',
  'an open element': '<A><B></B>',
  'crossed elements': '<A><B></A></B>',
  'two roots': '<A/><B/>',
  'text outside the root element': 'x<A/>',
  'a document type': '<!DOCTYPE a [<!ENTITY b "c">]><A>&b;</A>',
  'an unknown entity': '<A>&b;</A>',
  'a bare ampersand': '<A>a & b</A>',
  'a surrogate': '<A>&#xD800;</A>',
  'deep nesting': '<A>'.repeat(1000) + '</A>'.repeat(1000),
  'an entity named like a prototype property': '<A>&constructor;</A>',
};

for (const [name, xml] of Object.entries(malformed)) {
  test(`rejected as MalformedXML: ${name}`, (t) => {
    t.throws(() => parseXml(Buffer.from(xml)), { code: 'MalformedXML' });
  });
}

test('bytes that are not UTF-8 are rejected as MalformedXML', (t) => {
  t.throws(() => parseXml(Buffer.from([0x3c, 0x41, 0x3e, 0xff, 0x3c, 0x2f, 0x41, 0x3e])), {
    code: 'MalformedXML',
  });
});
