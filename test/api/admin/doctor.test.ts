import test from 'ava';
import type { DoctorReport } from '../../../shared/doctor/finding.ts';
import { readAdmin, runAdmin } from '../../support/admin.ts';
import { callAdmin, codeOf, createToken, testAdminToken } from '../../support/admin-api.ts';
import { startStack, type TestStack } from '../../support/stack.ts';

/** `admin doctor` by the admin API. */

let stack: TestStack;

test.before(async () => {
  stack = await startStack({ env: { ADMIN_TOKEN: testAdminToken } });
});
test.after.always(() => stack?.close());

const nameAll = ({ findings }: Pick<DoctorReport, 'findings'>): string[] =>
  findings.map(({ check, status }) => `${check}: ${status}`);

test('the API finds what the command finds, in one check for all who ask at a time', async (t) => {
  const reader = await createToken(stack, 'doctor-reader', 'read');
  const reports = await Promise.all(
    Array.from({ length: 5 }, () => callAdmin<DoctorReport>(stack.url, reader, 'GET', '/doctor')),
  );
  t.is(new Set(reports.map(({ status, body }) => `${status} ${body.at}`)).size, 1);
  const { stdout } = await runAdmin(stack.env, 'doctor', '--json');
  const findings = JSON.parse(stdout) as DoctorReport['findings'];
  t.deepEqual(nameAll(reports[0]!.body), nameAll({ findings }));
});

test('upstreams are called only with a token that may do everything, and each call is recorded', async (t) => {
  const billing = await createToken(stack, 'doctor-billing', 'billing');
  const refused = await callAdmin(stack.url, billing, 'POST', '/doctor/upstreams');
  t.is(codeOf(refused), 'forbidden');
  const { status, body } = await callAdmin<DoctorReport>(
    stack.url,
    testAdminToken,
    'POST',
    '/doctor/upstreams',
  );
  t.is(status, 200);
  t.like(body.findings[0], { check: 'upstream builtin', status: 'ok' });
  const [event] = await readAdmin<{ action: string; token: string }[]>(stack.env, 'audit', 'list');
  t.like(event, { action: 'model.test', token: 'ADMIN_TOKEN' });
});
