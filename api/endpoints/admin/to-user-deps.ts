import type { UserDeps } from '../../../shared/admin/users.ts';
import type { ApiContext } from '../../http/request/context.ts';
import type { Services } from '../../services.ts';

/** What changes of users need. If only a notice fails, the change itself has succeeded. */
export const toUserDeps = ({ web, redis, config, log }: Services, context: ApiContext): UserDeps => ({
  web,
  redis,
  config,
  onUnnoted: (consequence, error) =>
    log.warn(
      { requestId: context.state.requestId, consequence, err: error },
      'the end of a change of a user was not recorded',
    ),
});
