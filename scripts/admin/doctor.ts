import { runDoctor } from '../../shared/doctor/run-doctor.ts';
import { FoundProblems, readReason, type StorelessVerb } from './command.ts';
import { openTrail } from './open-trail.ts';
import { endProgress, showProgress } from './progress.ts';

export const doctorVerbs: Record<string, StorelessVerb> = {
  '': {
    usage: '[--upstreams]',
    help:
      'checks the configuration, versions, Redis, MongoDB, the bucket, clocks, the catalog, mail and what runs, and says ' +
      'what to mend; exits 1 if there is a problem. --upstreams has a worker call each upstream with each of its keys, for ' +
      'a few tokens',
    positionals: 0,
    options: [],
    flags: ['upstreams'],
    isChange: true,
    async runWithoutStores({ env, flags, options, warn }) {
      const upstreams = flags.has('upstreams');
      showProgress(upstreams ? 'Checking, and calling each upstream' : 'Checking');
      const findings = await runDoctor(
        env,
        upstreams ? (stores) => openTrail(stores, warn, readReason(options)) : null,
      ).finally(() => endProgress());
      if (findings.some(({ status }) => status === 'problem')) throw new FoundProblems(findings);
      return findings;
    },
  },
};
