import { mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { ExecutionContext, TestFn } from 'ava';
import { chromium, type BrowserContext, type Page, type Request } from 'playwright-core';
import { findBrowserPath } from './browser.ts';
import { startStack, type StackOptions, type TestStack } from './stack.ts';
import { createWebUser } from './web-client.ts';
import { createEmail } from './web-sign-in.ts';

/** A window of each kind that pages are made for. */
export const sizes = { phone: { width: 390, height: 844 }, desktop: { width: 1_280, height: 860 } } as const;

export interface WebPageOptions {
  readonly size?: keyof typeof sizes;
  readonly theme?: 'light' | 'dark';
  readonly language?: 'en' | 'ru';
  /** Failed requests that the test provokes, such as `/v1/web/auth/refresh`: parts of their addresses. */
  readonly expectedFailures?: readonly string[];
}

/** What a page must not do, and what it weighs. */
export interface Findings {
  readonly problems: string[];
  /** Sent bytes of scripts, compressed. */
  scriptBytes: number;
}

export interface WebPage {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly findings: Findings;
  /** Goes to a path of the gateway and waits until its heading is shown. */
  open(path: string): Promise<void>;
}

const browserArgs = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Layout that moves this much is visible. */
const maxLayoutShift = 0.02;

/** @param keepsPages whether it keeps pages that were left, to go back to them as they were, as people's browsers do */
export async function launchPages(keepsPages = false) {
  return await chromium.launch({
    executablePath: findBrowserPath()!,
    chromiumSandbox: false,
    args: browserArgs,
    ...(keepsPages ? { ignoreDefaultArgs: ['--disable-back-forward-cache'] } : {}),
  });
}

export type PageBrowser = Awaited<ReturnType<typeof launchPages>>;

export interface Pages {
  readonly stack: TestStack;
  readonly browser: PageBrowser;
}

/**
 * One stack and one browser for the tests of a file. They can be used once they have started, before the first test.
 * @param options of the stack
 * @param onStarted called before the first test, once both have started
 */
export function usePages(
  test: TestFn,
  options: StackOptions | (() => Promise<StackOptions>) = {},
  onStarted: () => Promise<void> | void = () => undefined,
): Pages {
  let stack: TestStack | undefined;
  let browser: PageBrowser | undefined;
  test.before(async () => {
    const stackOptions = typeof options === 'function' ? await options() : options;
    [stack, browser] = await Promise.all([startStack(stackOptions), launchPages()]);
    await onStarted();
  });
  test.after.always(async () => {
    await browser?.close();
    await stack?.close();
  });
  return {
    get stack() {
      return stack!;
    },
    get browser() {
      return browser!;
    },
  };
}

/** What the scripts of a first page may weigh until the network is idle, as they are sent. */
export const maxScriptBytes = 120_000;

/**
 * Opens a window over the stack. At the end of the test, asserts that nothing was reported on the console, nothing
 * came from another host, no request failed, the policy held, and nothing moved.
 */
export async function useWebPage(
  t: ExecutionContext,
  { browser, stack }: Pages,
  { size = 'desktop', theme = 'light', language = 'en', expectedFailures = [] }: WebPageOptions = {},
): Promise<WebPage> {
  const context = await browser.newContext({
    viewport: sizes[size],
    colorScheme: theme,
    locale: language === 'ru' ? 'ru-RU' : 'en-US',
    timezoneId: 'Europe/Moscow',
    reducedMotion: 'reduce',
  });
  const findings: Findings = { problems: [], scriptBytes: 0 };
  await context.addInitScript(watchLayout);
  const page = await context.newPage();
  watchPage(page, stack.url, findings, expectedFailures);
  t.teardown(async () => {
    findings.problems.push(...(await readShifts(page)));
    await context.close();
    if (findings.problems.length > 0) throw new Error(findings.problems.join('\n'));
  });
  return {
    page,
    context,
    findings,
    async open(path) {
      findings.problems.push(...(await readShifts(page)));
      await page.goto(`${stack.url}${path}`);
      await page.locator('#main h1').first().waitFor();
    },
  };
}

function watchPage(
  page: Page,
  origin: string,
  findings: Findings,
  expectedFailures: readonly string[],
): void {
  const isExpected = (url: string): boolean => expectedFailures.some((part) => url.includes(part));
  page.on('console', (message) => {
    const isNoise = message.type() !== 'error' && message.type() !== 'warning';
    if (isNoise || isExpected(message.location().url)) return;
    findings.problems.push(`console ${message.type()}: ${message.text()} (${message.location().url})`);
  });
  page.on('pageerror', (error) => findings.problems.push(`uncaught: ${error.stack ?? error.message}`));
  page.on('request', (request) => {
    const url = request.url();
    const isOwn = url.startsWith(`${origin}/`) || url.startsWith('data:') || url.startsWith('blob:');
    if (!isOwn) findings.problems.push(`another host: ${url}`);
  });
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText ?? '';
    // Pages abort what they no longer need.
    if (reason !== 'net::ERR_ABORTED' && !isExpected(request.url()))
      findings.problems.push(`failed: ${request.url()} ${reason}`);
  });
  page.on('requestfinished', (request) => {
    // A window that is closed has no sizes any more.
    measureScript(request).then(
      (bytes) => (findings.scriptBytes += bytes),
      () => undefined,
    );
  });
}

async function measureScript(request: Request): Promise<number> {
  if (request.resourceType() !== 'script') return 0;
  return (await request.sizes()).responseBodySize;
}

/**
 * Runs in the page, before its scripts. Text, because the types of a browser's globals are not those of Node. What moves in
 * response to an action is wanted. Browsers expect it within half a second, which takes longer on a busy machine.
 */
const watchLayout = `
  globalThis.layoutShifts = [];
  globalThis.policyReports = [];
  const inputTimes = [];
  for (const type of ['pointerdown', 'keydown', 'input'])
    addEventListener(type, ({ timeStamp }) => inputTimes.push(timeStamp), { capture: true });
  new PerformanceObserver((list) => {
    for (const { value, startTime, hadRecentInput, sources } of list.getEntries()) {
      const nodes = sources.map(({ node }) => (node?.nodeName ?? '?') + '.' + String(node?.className ?? ''));
      const isResponse = inputTimes.some((time) => time <= startTime && startTime - time < 3_000);
      if (!hadRecentInput && !isResponse)
        layoutShifts.push({ value, startTime, nodes: nodes.join(', ') });
    }
  }).observe({ type: 'layout-shift', buffered: true });
  addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
    policyReports.push('policy: ' + violatedDirective + ' blocks ' + blockedURI);
  });
`;

interface Shift {
  readonly value: number;
  readonly startTime: number;
  readonly nodes: string;
}

async function readShifts(page: Page): Promise<string[]> {
  const read = (): { shifts: Shift[]; reports: string[] } => {
    const state = globalThis as unknown as { layoutShifts?: Shift[]; policyReports?: string[] };
    return { shifts: state.layoutShifts?.splice(0) ?? [], reports: state.policyReports?.splice(0) ?? [] };
  };
  const { shifts, reports } = await page.evaluate(read).catch(() => ({ shifts: [], reports: [] }));
  const sum = (window: readonly Shift[]): number => window.reduce((total, { value }) => total + value, 0);
  const moved = splitShifts(shifts).filter((window) => sum(window) > maxLayoutShift);
  return [
    ...reports,
    ...moved.map((window) => `layout shift ${sum(window).toFixed(3)}: ${listMoved(window)}`),
  ];
}

/** What belongs together, as Web Vitals defines it: shifts within a second of each other, for at most five seconds. */
function splitShifts(shifts: readonly Shift[]): Shift[][] {
  const windows: Shift[][] = [];
  for (const shift of shifts) {
    const window = windows.at(-1);
    const isSame =
      window !== undefined &&
      shift.startTime - window.at(-1)!.startTime < 1_000 &&
      shift.startTime - window[0]!.startTime < 5_000;
    if (isSame) window.push(shift);
    else windows.push([shift]);
  }
  return windows;
}

const listMoved = (shifts: readonly Shift[]): string =>
  shifts
    .filter(({ value }) => value >= 0.001)
    .map(({ value, nodes }) => `${value.toFixed(3)} ${nodes}`)
    .join('; ');

/** Gives the window the session of a new user, without captcha and mail. Call it before `open`. */
export async function signIn(
  { context }: Pick<WebPage, 'context'>,
  stack: TestStack,
  email = createEmail(),
): Promise<Awaited<ReturnType<typeof createWebUser>>> {
  const created = await createWebUser(stack, email);
  const cookies = Array.from(created.client.cookies, ([name, value]) => ({ name, value, url: stack.url }));
  await context.addCookies(
    cookies.map((cookie) => ({ ...cookie, httpOnly: true, sameSite: 'Lax' as const })),
  );
  return created;
}

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** Runs axe over the page as it is. @returns the serious findings, each with what it is about */
export async function findAxeProblems({ page }: Pick<WebPage, 'page'>): Promise<string[]> {
  // Evaluated by the browser's own protocol, so the page's policy stays as it is.
  const { readFile } = await import('node:fs/promises');
  await page.evaluate(await readFile(axePath, 'utf8'));
  const violations = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: {
        run(): Promise<{
          violations: {
            id: string;
            impact: string;
            help: string;
            nodes: { html: string; failureSummary: string }[];
          }[];
        }>;
      };
    };
    return (await axe.run()).violations;
  });
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, help, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${help}\n${html}\n${failureSummary}`),
    );
}

const screenshotFolder = join(process.cwd(), '.cache', 'screenshots');

/**
 * Writes pictures of the page in both themes and at both widths to `.cache/screenshots`, if SCREENSHOTS is set.
 * @param fullPage false for a page of a hundred screens: only what is seen
 */
export async function takeScreenshots(
  { page, findings }: Pick<WebPage, 'page' | 'findings'>,
  name: string,
  fullPage = true,
): Promise<void> {
  if (process.env['SCREENSHOTS'] === undefined) return;
  findings.problems.push(...(await readShifts(page)));
  await mkdir(screenshotFolder, { recursive: true });
  const before = page.viewportSize();
  for (const theme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: theme });
    await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
    for (const [size, viewport] of Object.entries(sizes)) {
      await page.setViewportSize(viewport);
      await page.screenshot({ path: join(screenshotFolder, `${name}-${size}-${theme}.png`), fullPage });
    }
  }
  if (before !== null) await page.setViewportSize(before);
  // Another size moves everything.
  await readShifts(page);
}
