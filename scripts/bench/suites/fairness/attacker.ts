import { reportToParent, runPlanOfParent } from '../../harness/child-process.ts';
import { attacks } from './attacks.ts';
import type { AttackPlan } from './scenario.ts';

/** Runs in a separate process, so that the attack's CPU use does not distort the measured account's latency. */
runPlanOfParent('bench-attacker', async (plan) => {
  const { scenario, target } = plan as AttackPlan;
  const attack = Object.hasOwn(attacks, scenario) ? attacks[scenario] : undefined;
  if (attack === undefined) throw new Error(`there is no attack ${scenario}`);
  await attack(target);
  process.once('message', () => process.exit(0));
  reportToParent('ready');
});
