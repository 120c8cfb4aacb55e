import { html, Html } from '../../../shared/platform/runtime/html.ts';

/** The contents of a mail as plain text, in reading order. Both the text and the HTML version are made from it. */
export interface MailContent {
  readonly language: string;
  readonly service: string;
  readonly heading: string;
  readonly lead: string;
  readonly code: { readonly digits: string; readonly validity: string } | null;
  /** Name and value. */
  readonly facts: readonly (readonly [string, string])[];
  readonly advice: readonly string[];
  readonly footer: readonly string[];
}

/** Lays out the text version. The code is on a separate line, so that it is easy to find and copy. */
export function layOutText({ heading, lead, code, facts, advice, footer }: MailContent): string {
  const paragraphs = [
    heading,
    lead,
    ...(code === null ? [] : [`    ${code.digits}`, code.validity]),
    ...(facts.length === 0 ? [] : [facts.map(([name, value]) => `${name}: ${value}`).join('\n')]),
    ...advice,
    ['--', ...footer].join('\n'),
  ];
  return `${paragraphs.join('\n\n')}\n`;
}

const fonts = "-apple-system,BlinkMacSystemFont,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif";
const monospace = "ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono','DejaVu Sans Mono',monospace";

/** Tables with inline styles, because many mail programs support nothing else. */
const table = new Html('table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0"');

const styles = {
  page: 'margin:0;padding:0;background:#f3f4f7;',
  column: `max-width:520px;text-align:left;font-family:${fonts};`,
  service: 'padding:0 4px 16px;font-size:15px;line-height:20px;font-weight:600;color:#1b2230;',
  dot: 'color:#3457d5;',
  card: 'padding:36px 36px 24px;background:#ffffff;border:1px solid #e3e6ec;border-radius:14px;',
  heading:
    'margin:0 0 12px;font-size:24px;line-height:31px;font-weight:700;letter-spacing:-0.2px;color:#141a26;',
  lead: 'margin:0;font-size:16px;line-height:25px;color:#3d4657;word-break:break-word;',
  code:
    // The left padding balances the letter spacing after the last digit.
    'padding:20px 8px 20px 18px;background:#f1f4fd;border:1px solid #d8e0f8;border-radius:10px;' +
    `font-family:${monospace};font-size:36px;line-height:42px;font-weight:700;letter-spacing:10px;color:#141a26;`,
  validity: 'margin:0;font-size:14px;line-height:21px;color:#6a7384;text-align:center;',
  factName:
    'padding:3px 18px 3px 0;font-size:14px;line-height:21px;vertical-align:top;white-space:nowrap;color:#6a7384;',
  factValue:
    'padding:3px 0;font-size:14px;line-height:21px;vertical-align:top;word-break:break-word;color:#2b3444;',
  line: 'margin:26px 0 0;padding:20px 0 0;border-top:1px solid #e9ecf1;',
  advice: 'margin:0 0 6px;font-size:13px;line-height:20px;color:#6a7384;word-break:break-word;',
  footer: 'padding:18px 4px 0;font-size:12px;line-height:18px;color:#7a8394;word-break:break-word;',
} as const;

/** For mail programs that support media queries. Others keep the colours or invert them. */
const darkStyles = new Html(`@media (prefers-color-scheme: dark) {
.page { background: #0f1115 !important; }
.card { background: #1a1d24 !important; border-color: #2b303b !important; }
.strong { color: #f3f4f6 !important; }
.plain { color: #c9ced8 !important; }
.quiet { color: #98a1b0 !important; }
.code { background: #232a3d !important; border-color: #36415f !important; }
.line { border-color: #2b303b !important; }
}`);

/** Lays out the HTML version: the service's name, a card, and the small print below. It loads nothing external. */
export function layOutHtml(content: MailContent): string {
  const { language, service, heading, lead, code, facts, advice, footer } = content;
  const page = html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${heading}</title>
<style>${darkStyles}</style>
</head>
<body class="page" style="${styles.page}">
<${table} class="page" style="${styles.page}">
<tr><td align="center" style="padding:36px 16px;">
<${table} style="${styles.column}">
<tr><td class="strong" style="${styles.service}"><span style="${styles.dot}">&#9679;</span>&ensp;${service}</td></tr>
<tr><td class="card" style="${styles.card}">
<h1 class="strong" style="${styles.heading}">${heading}</h1>
<p class="plain" style="${styles.lead}">${lead}</p>
${code === null ? null : layOutCode(code)}${facts.length === 0 ? null : layOutFacts(facts)}
<div class="line" style="${styles.line}">${advice.map(layOutAdvice)}</div>
</td></tr>
<tr><td class="quiet" style="${styles.footer}">${footer.map((line) => html`${line}<br />`)}</td></tr>
</table>
</td></tr>
</table>
</body>
</html>
`;
  return page.text;
}

/** The code is a single text node, so that a double click selects it. */
function layOutCode({ digits, validity }: NonNullable<MailContent['code']>): Html {
  return html`<${table} style="margin:24px 0 10px;">
<tr><td class="code strong" align="center" style="${styles.code}">${digits}</td></tr>
</table>
<p class="quiet" style="${styles.validity}">${validity}</p>
`;
}

function layOutFacts(facts: MailContent['facts']): Html {
  const rows = facts.map(
    ([name, value]) =>
      html`<tr>
        <td class="quiet" style="${styles.factName}">${name}</td>
        <td class="plain" width="100%" style="${styles.factValue}">${value}</td>
      </tr>`,
  );
  return html`<${table} style="margin:24px 0 0;">${rows}</table>`;
}

const layOutAdvice = (text: string): Html => html`<p class="quiet" style="${styles.advice}">${text}</p>`;
