import test from 'ava';
import fc from 'fast-check';
import { countTokens, encodingNames } from '../../../../shared/catalog/count-tokens.ts';
import { estimateInOtherVocabularies } from '../../../../shared/preparing/tokens/other-vocabularies.ts';

const prose = {
  english:
    'The keeper of the lighthouse had lived on the island for thirty years, and in all that time he had never once been ' +
    'late to light the lamp. Every evening he climbed the hundred and twelve steps, wiped the glass with a soft cloth, ' +
    'and sat down to wait until the sea was dark. Fishermen who passed by on their way home used to wave to him; he waved ' +
    'back, although he knew that they could hardly see him. In winter, when the boat with his bread could not land, he ate ' +
    'dried fish and read the same seven books again. “One gets used to everything,” he told the young engineer who came ' +
    'to measure the tower in the spring of 1923, “except to being asked whether one has got used to it.”\n',
  russian:
    'Смотритель маяка прожил на острове тридцать лет и за всё это время ни разу не опоздал зажечь лампу. Каждый вечер он ' +
    'поднимался на сто двенадцать ступеней, протирал стекло мягкой тряпкой и садился ждать, пока море не потемнеет. ' +
    'Рыбаки, возвращавшиеся домой, обычно махали ему рукой; он махал в ответ, хотя знал, что они едва ли его видят. Зимой, ' +
    'когда лодка с хлебом не могла пристать к берегу, он ел сушёную рыбу и перечитывал всё те же семь книг. «Ко всему ' +
    'привыкаешь, — сказал он молодому инженеру, который весной 1923 года приехал обмерять башню, — кроме вопроса о том, ' +
    'привык ли ты».\n',
  chinese:
    '灯塔的看守人在岛上住了三十年，这么多年来他点灯从来没有迟到过一次。每天傍晚，他爬上一百一十二级台阶，用软布擦干净玻璃，' +
    '然后坐下来等待大海变暗。回家路过的渔民常常向他挥手，他也挥手回应，虽然他知道他们几乎看不见他。冬天，送面包的小船靠不了岸，' +
    '他就吃鱼干，把那七本书再读一遍。一九二三年春天，一位年轻的工程师来测量这座塔，他对工程师说：“人什么都能习惯，' +
    '只是不习惯别人问他习惯了没有。”\n',
  german:
    'Der Leuchtturmwärter lebte seit dreißig Jahren auf der Insel und hatte in all der Zeit nicht ein einziges Mal die Lampe ' +
    'zu spät angezündet. Jeden Abend stieg er die hundertzwölf Stufen hinauf, wischte das Glas mit einem weichen Tuch ab und ' +
    'setzte sich, um zu warten, bis das Meer dunkel war.\n',
  japanese:
    '灯台守は三十年間その島に住んでいたが、その間一度も明かりをともすのに遅れたことがなかった。毎晩、百十二段の階段を上り、' +
    '柔らかい布でガラスを拭き、海が暗くなるまで座って待っていた。\n',
  hindi:
    'प्रकाशस्तंभ का रखवाला तीस साल से द्वीप पर रहता था और इतने समय में उसने एक बार भी दीपक जलाने में देर नहीं की थी। हर शाम वह ' +
    'एक सौ बारह सीढ़ियाँ चढ़ता, मुलायम कपड़े से काँच पोंछता और समुद्र के अँधेरा होने तक बैठकर इंतज़ार करता।\n',
  code: `export function countTokens(text: string, name: EncodingName = defaultEncoding): number {
  let count = 0;
  for (let start = 0; start < text.length;) {
    const end = findBlockEnd(text, start);
    if (end > start) {
      count += countBlock(text, start, end, name);
    }
    start = end;
  }
  return count;
}
`,
};

for (const [name, text] of Object.entries(prose)) {
  test(`for prose (${name}) the estimate for other vocabularies is at most 1.3 times our own token count`, (t) => {
    const own = countTokens(text);
    const estimate = estimateInOtherVocabularies(text);
    t.log(`${own} tokens by our own count, ${estimate} by the estimate`);
    t.true(estimate <= 1.3 * own);
  });
}

const splitTexts = {
  spaces: ' '.repeat(60_000),
  newlines: '\n'.repeat(60_000),
  tabs: '\t'.repeat(60_000),
  'white space of several kinds': ' \n\t'.repeat(20_000),
  'wide spaces': '\u3000'.repeat(10_000),
  dashes: '-'.repeat(60_000),
  boxes: '□'.repeat(20_000),
  'words between spaces': `${' '.repeat(120)}a`.repeat(500),
  Malayalam: 'സ്വാതന്ത്ര്യത്തോടെ '.repeat(1_000),
  Georgian: 'საქართველოს '.repeat(2_000),
  Armenian: 'հնարավորություն '.repeat(2_000),
  Amharic: 'ኢትዮጵያ ውስጥ '.repeat(2_000),
  Tamil: 'தெரிவித்துள்ளார் '.repeat(1_000),
  Burmese: 'မြန်မာနိုင်ငံ '.repeat(1_000),
};

for (const [name, text] of Object.entries(splitTexts)) {
  test(`for text that other vocabularies split into many tokens (${name}) we count at least half of the highest count`, (t) => {
    const counts = encodingNames.map((encoding) => countTokens(text, encoding));
    const estimate = estimateInOtherVocabularies(text);
    t.log(`${counts.join(', ')} tokens by encodings, ${estimate} by the estimate`);
    t.true(Math.max(estimate, counts[0]!) >= Math.max(...counts) / 2);
  });
}

test('the estimate is at most one token per byte, and the estimates of two parts add up to that of the whole within five', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), fc.nat(300), (text, at) => {
      const whole = estimateInOtherVocabularies(text);
      const parts =
        estimateInOtherVocabularies(text, 'chat', 0, Math.min(at, text.length)) +
        estimateInOtherVocabularies(text, 'chat', Math.min(at, text.length));
      t.true(whole <= Buffer.byteLength(text));
      t.true(Math.abs(whole - parts) <= 5);
    }),
  );
});
